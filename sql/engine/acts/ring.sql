{%- from "macros.sql" import definer -%}
{%- if notify %}
create or replace function gleaner.ring_{{ name }}() returns trigger
language plpgsql
{{ definer() }}
as $ring$
begin
    perform pg_notify('gleaner', '{{ name }}');
    return null;
end
$ring$;
{%- endif %}
