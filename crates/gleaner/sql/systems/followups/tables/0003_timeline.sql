-- What is planned, sent, failed and cancelled, by its time, as it is shown.
create index scheduled_actions_timeline_idx on public.scheduled_actions (status, scheduled_for, id);
