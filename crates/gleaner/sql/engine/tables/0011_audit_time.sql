-- The audit, newest first: of everybody, of one queue, of one person.
create index audit_queue_idx on gleaner.audit (queue, id desc);
create index audit_caller_idx on gleaner.audit (caller text_pattern_ops, id desc);
