-- The engine's own writes pass by: the condition is all they pay.
drop trigger if exists {{ trigger_insert }} on {{ table }};
create trigger {{ trigger_insert }}
before insert on {{ table }}
for each row when (current_user is distinct from 'gleaner_engine'{{ insert_needs_adapter }})
execute function gleaner.adapt_{{ name }}();

drop trigger if exists {{ trigger_update }} on {{ table }};
create trigger {{ trigger_update }}
before update on {{ table }}
for each row when (current_user is distinct from 'gleaner_engine')
execute function gleaner.adapt_{{ name }}();
{%- if notify %}

-- Asked for by the declaration: a bell inside the writer's transaction. It costs writers their shared commits.
drop trigger if exists {{ trigger_notify }} on {{ table }};
create trigger {{ trigger_notify }}
after insert on {{ table }}
for each statement execute function gleaner.ring_{{ name }}();
{%- endif %}
