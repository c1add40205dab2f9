-- Beyond the specification: the stage an agent has reached, so that the next one resumes there and people can watch.
alter table public.activities add column progress jsonb;
comment on column public.activities.progress is '{stage, percent, at}: how far the work has come.';
