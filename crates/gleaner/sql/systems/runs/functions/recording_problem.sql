/*
 * What is wrong with the content of a recording, in one sentence; null if nothing is.
 * Reads    Chrome's Recorder JSON (steps with `type`) and our own steps (with `do`); one recording may have both.
 */
create or replace function gleaner.recording_problem(p_content jsonb) returns text
language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
    c_recorder constant jsonb := '{"setViewport": ["width", "height"], "navigate": ["url"], "click": ["selectors"], "doubleClick": ["selectors"],
        "hover": ["selectors"], "change": ["selectors", "value"], "keyDown": ["key"], "keyUp": ["key"], "scroll": [], "waitForElement": ["selectors"],
        "waitForExpression": ["expression"], "emulateNetworkConditions": ["download", "upload", "latency"], "close": [], "customStep": []}';
    c_own constant jsonb := '{"open": ["url"], "click": ["selector"], "type": ["selector", "text"], "select": ["selector", "value"], "wait": [],
        "assert": ["text"], "screenshot": []}';
    v_step  jsonb;
    v_n     bigint;
    v_known jsonb;
    v_verb  text;
    v_field text;
    v_where text;
begin
    if jsonb_typeof(p_content) is distinct from 'object' or jsonb_typeof(p_content -> 'steps') is distinct from 'array' then
        return 'a recording is an object with a list "steps"';
    elsif p_content -> 'steps' = '[]' then
        return 'the recording has no steps';
    elsif jsonb_array_length(p_content -> 'steps') > 1000 then
        return 'the recording has more than 1000 steps';
    end if;
    foreach v_field in array array['secrets', 'sites'] loop
        if p_content ? v_field and (jsonb_typeof(p_content -> v_field) <> 'array'
                or exists (select from jsonb_array_elements(p_content -> v_field) as e where jsonb_typeof(e) <> 'string')) then
            return format('"%s" is a list of names', v_field);
        end if;
    end loop;
    for v_step, v_n in select s.value, s.n from jsonb_array_elements(p_content -> 'steps') with ordinality as s (value, n) loop
        v_where := 'step ' || v_n;
        if jsonb_typeof(v_step) <> 'object' then
            return v_where || ' is no object';
        elsif jsonb_typeof(v_step -> 'do') = 'string' then
            v_verb := v_step ->> 'do';
            v_known := c_own;
        elsif jsonb_typeof(v_step -> 'type') = 'string' then
            v_verb := v_step ->> 'type';
            v_known := c_recorder;
        else
            return v_where || ' says neither "do" (our own steps) nor "type" (Chrome''s Recorder)';
        end if;
        v_where := format('%s (%s)', v_where, left(v_verb, 40));
        if not v_known ? v_verb then
            return format('%s: there is no such step; there are: %s', v_where,
                (select string_agg(k, ', ' order by k) from jsonb_object_keys(v_known) as k));
        end if;
        for v_field in select jsonb_array_elements_text(v_known -> v_verb) loop
            if not v_step ? v_field or v_step -> v_field in ('null', '[]') then
                return format('%s needs "%s"', v_where, v_field);
            end if;
        end loop;
        if v_verb in ('open', 'navigate') and v_step ->> 'url' !~* '^(https?://|\{\{)' then
            return format('%s: the address begins with http:// or https://', v_where);
        elsif v_verb = 'wait' and not v_step ?| array['selector', 'text', 'ms'] then
            return format('%s needs "selector", "text" or "ms"', v_where);
        elsif v_step ? 'retries' and (jsonb_typeof(v_step -> 'retries') <> 'number' or (v_step ->> 'retries')::numeric not between 0 and 10) then
            return format('%s: "retries" is a number from 0 to 10', v_where);
        elsif v_step ? 'timeout' and (jsonb_typeof(v_step -> 'timeout') <> 'number' or (v_step ->> 'timeout')::numeric not between 1 and 300000) then
            return format('%s: "timeout" is a number of milliseconds, at most 300000', v_where);
        end if;
    end loop;
    return null;
end
$$;
comment on function gleaner.recording_problem(jsonb) is 'What is wrong with the content of a recording; null if nothing is.';
revoke all on function gleaner.recording_problem(jsonb) from public, anon, authenticated;
grant execute on function gleaner.recording_problem(jsonb) to authenticated, service_role;
