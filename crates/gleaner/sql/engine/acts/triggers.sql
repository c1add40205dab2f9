{#- Of plain writers, and of triggers that run inside an act: every statement but the act's own, which its depth tells. -#}
{%- set not_an_act -%}
current_user <> 'gleaner_engine' or pg_trigger_depth() > 0 and pg_trigger_depth() > current_setting('vacuum_cost_page_hit')::integer
{%- endset -%}
{%- if adapt_inserts and engine == "bulk" %}
-- Plain inserts become work.
create trigger {{ trigger_insert }}
before insert on {{ table }}
for each row when ({{ not_an_act }})
execute function gleaner.adapt_{{ name }}();
{%- endif %}
{%- if engine == "bulk" %}

-- Once for a statement: a row does not say itself whether a batch lease holds it, so a trigger for each row could not tell either.
create trigger {{ trigger_update }}
before update of {{ acts_alone }} on {{ table }}
for each statement when ({{ not_an_act }})
execute function gleaner.refuse_update({{ name_literal }});

-- The records before the rows, as in every act: a completion that holds a record may wait for a row that is about to go.
create trigger {{ trigger_lock }}
before delete on {{ table }}
for each statement when ({{ not_an_act }})
execute function gleaner.leave_batch({{ name_literal }});

-- A deleted row leaves its batch lease and its bulk range: a row inserted under the same key later has no holder.
create trigger {{ trigger_delete }}
after delete on {{ table }}
for each row when (old.{{ col.lease }} in (0, -1) and old.{{ status.column }} = {{ status.ready }})
execute function gleaner.leave_batch({{ name_literal }}, {{ key.literal }});

create trigger {{ trigger_truncate }}
after truncate on {{ table }}
for each statement execute function gleaner.leave_batch({{ name_literal }});
{%- else %}

-- Plain {{ "inserts become work, and plain " if adapt_inserts }}updates of a status become acts.
create trigger {{ trigger_update }} before {{ "insert or " if adapt_inserts }}update on {{ table }} for each row
when ({{ not_an_act }})
execute function gleaner.adapt_{{ name }}();
{%- if result %}

-- Fires only when the statement names the status: ending the work once more, as opposed to correcting its result.
create trigger {{ trigger_again }} before update of {{ status.column }} on {{ table }} for each row
when (old.{{ status.column }} = {{ status.done }} and new.{{ status.column }} = {{ status.done }})
execute function gleaner.adapt_{{ name }}('again');
{%- endif %}
{%- endif %}
{%- if notify %}

-- In the writer's transaction, which costs concurrent writers their shared commits: `notify = false` where there are many.
create trigger {{ trigger_notify }} after insert on {{ table }} for each statement execute function gleaner.notify_rows({{ name_literal }});
{%- endif %}
