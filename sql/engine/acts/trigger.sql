-- The engine's own writes pass by: the condition is all they pay.
drop trigger if exists {{ trigger_insert }} on {{ table }};
{%- if adapt_inserts %}
create trigger {{ trigger_insert }}
before insert on {{ table }}
for each row when (current_user is distinct from 'gleaner_engine')
execute function gleaner.adapt_{{ name }}();
{%- endif %}

drop trigger if exists {{ trigger_update }} on {{ table }};
drop trigger if exists {{ trigger_again }} on {{ table }};
{%- if sheaf %}
-- Once for a statement: a trigger for each row would lock each row once more, and what a sheaf holds is nothing a row can tell.
create trigger {{ trigger_update }}
before update of {{ acts_alone }} on {{ table }}
for each statement when (current_user is distinct from 'gleaner_engine')
execute function gleaner.refuse_update('{{ name }}');

-- Of rows that were never touched alone: no other is in a sheaf.
drop trigger if exists {{ trigger_delete }} on {{ table }};
create trigger {{ trigger_delete }}
after delete on {{ table }}
for each row when (old.{{ col.lease }} in (0, -1) and old.{{ status.column }} = {{ status.ready }})
execute function gleaner.leave_sheaf('{{ name }}', '{{ key.name | replace("'", "''") }}');

drop trigger if exists {{ trigger_truncate }} on {{ table }};
create trigger {{ trigger_truncate }}
after truncate on {{ table }}
for each statement execute function gleaner.leave_sheaf('{{ name }}');
{%- else %}
create trigger {{ trigger_update }}
before update on {{ table }}
for each row when (current_user is distinct from 'gleaner_engine')
execute function gleaner.adapt_{{ name }}();
{%- if result %}

-- Fires only when the statement names the status: ending the work once more, as opposed to correcting its result.
create trigger {{ trigger_again }}
before update of {{ status.column }} on {{ table }}
for each row when (current_user is distinct from 'gleaner_engine' and old.{{ status.column }} = {{ status.done }} and new.{{ status.column }} = {{ status.done }}
    and new.{{ result.column }} is distinct from old.{{ result.column }})
execute function gleaner.adapt_{{ name }}('again');
{%- endif %}
{%- endif %}
{%- if notify %}

-- Asked for by the declaration: a bell inside the writer's transaction. It costs writers their shared commits.
drop trigger if exists {{ trigger_notify }} on {{ table }};
create trigger {{ trigger_notify }}
after insert on {{ table }}
for each statement execute function gleaner.ring_{{ name }}();
{%- endif %}
