-- The stage an agent has reached, so that the next agent resumes there and users can follow the work.
alter table public.activities add column progress jsonb;
comment on column public.activities.progress is '{stage, percent, at}: how far the work has come.';
