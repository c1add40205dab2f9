{#- Rendered for each function found in the text above; see render.rs. -#}
{%- for f in functions %}
alter function gleaner.{{ f.signature }} owner to gleaner_engine;
revoke all on function gleaner.{{ f.signature }} from public, anon, authenticated, service_role;
{%- if f.roles %}
grant execute on function gleaner.{{ f.signature }} to {{ f.roles }};
{%- endif %}
{%- endfor %}
