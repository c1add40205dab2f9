-- Early results: the stage reached and what was found so far.
alter table public.agent_processing_queue
    add column progress jsonb,
    add column result   jsonb;
comment on column public.agent_processing_queue.progress is '{stage, percent, at}: how far the work has come.';
comment on column public.agent_processing_queue.result is 'Early results while work goes on, then the final ones.';
