//! What is allowed; everything else is not. One line per relation, or per kind of its rows; one column per caller: not signed in;
//! a user without a row in `sales`; a disabled administrator whose token is still valid; a member; a member who keeps work
//! private; an administrator; a worker's key; the service key. Letters are select, insert, update and delete.

/// Relation, cells, and the rows meant. A new table or view has no line here, and fails the test until a developer adds one.
pub(super) const RELATIONS: &str = "
                                  anon stranger former member private admin worker service
    public.activities             ---- ---- ---- siu- siu- siu- ---- siud  raw_data @> '{\"of\": \"member\"}'
    public.activities             ---- ---- ---- -i-- siu- siu- ---- siud  raw_data @> '{\"of\": \"private\"}'
    public.activities             ---- ---- ---- siu- siu- siu- ---- siud  raw_data @> '{\"of\": \"nobody\"}'
    public.activities             ---- ---- ---- siu- siu- siu- s-u- siud  raw_data @> '{\"of\": \"the worker\"}'
    public.unmatched_activities   ---- ---- ---- s--- s--- s--- ---- s---  raw_data @> '{\"of\": \"member\"}'
    public.unmatched_activities   ---- ---- ---- ---- s--- s--- ---- s---  raw_data @> '{\"of\": \"private\"}'
    public.unmatched_activities   ---- ---- ---- s--- s--- s--- ---- s---  raw_data @> '{\"of\": \"nobody\"}'
    public.unmatched_activities   ---- ---- ---- s--- s--- s--- s--- s---  raw_data @> '{\"of\": \"the worker\"}'
    public.activity_failures      ---- ---- ---- s--- s--- s--- ---- siud  raw_data @> '{\"of\": \"member\"}'
    public.activity_failures      ---- ---- ---- ---- s--- s--- ---- siud  raw_data @> '{\"of\": \"private\"}'
    public.activity_failures      ---- ---- ---- s--- s--- s--- ---- siud  raw_data @> '{\"of\": \"nobody\"}'
    public.activity_failures      ---- ---- ---- s--- s--- s--- s--- siud  raw_data @> '{\"of\": \"the worker\"}'
    public.sales                  ---- ---- ---- s-u- s--- s--- ---- siud  first_name = 'member'
    public.sales                  ---- ---- ---- s--- s-u- s--- ---- siud  first_name = 'private'
    public.sales                  ---- ---- ---- s--- s--- s-u- ---- siud  first_name = 'admin'
    public.sales                  ---- ---- s--- s--- s--- s--- ---- siud  first_name = 'former'
    public.contacts               ---- ---- ---- siud siud siud ---- siud  true
    public.contact_addresses      ---- ---- ---- ---- ---- ---- ---- s---  true
    public.contact_identities     ---- ---- ---- siud siud siud ---- siud  true
    public.crm_processing_nodes   ---- ---- ---- siud s--- s--- ---- siud  sales_id = 1
    public.crm_processing_nodes   ---- ---- ---- s--- siud s--- ---- siud  sales_id = 2
    public.crm_processing_nodes   ---- ---- ---- s--- s--- s--- ---- siud  sales_id = 4
    public.ingestion_providers    ---- ---- ---- ---- ---- siud ---- siud  true

    public.workspaces             ---- ---- ---- s--- ---- s--- ---- siud  true
    public.workspace_members      ---- ---- ---- s--d ---- s--d ---- siud  true
    public.workspace_invitations  ---- ---- ---- s--d ---- s--d ---- siud  true
    public.baskets                ---- ---- ---- si-- ---- si-- ---- siud  true
    public.raw_dumps              ---- ---- ---- si-d ---- si-d ---- siud  true
    public.blocks                 ---- ---- ---- s--- ---- s--- ---- siud  true
    public.context_items          ---- ---- ---- s--- ---- s--- ---- siud  true
    public.context_item_sources   ---- ---- ---- s--- ---- s--- ---- siud  true
    public.substrate_relationships ---- ---- ---- s--- ---- s--- ---- siud  true
    public.agent_processing_queue ---- ---- ---- s--- ---- s--- ---- siud  processing_state <> 'claimed' or session = 'other'
    public.agent_processing_queue ---- ---- ---- s--- ---- s--- s--- siud  processing_state = 'claimed' and session <> 'other'
    public.failed_dumps           ---- ---- ---- s--- ---- s--- ---- s---  true
    public.stuck_dumps            ---- ---- ---- s--- ---- s--- ---- s---  claimed_by = 'other'
    public.stuck_dumps            ---- ---- ---- s--- ---- s--- s--- s---  claimed_by = 'the worker'
    public.dump_agents            ---- ---- ---- s--- ---- s--- ---- s---  agent = 'other'
    public.dump_agents            ---- ---- ---- s--- ---- s--- s--- s---  agent = 'the worker'
    public.processing_performance ---- ---- ---- s--- ---- s--- ---- s---  true
    public.queue_depth_by_workspace ---- ---- ---- s--- ---- s--- ---- s---  true
    public.workspace_health       ---- ---- ---- s--- ---- s--- ---- s---  true
    public.queue_health           ---- ---- ---- s--- ---- s--- ---- s---  processing_state <> 'claimed' or count = 2
    public.queue_health           ---- ---- ---- s--- ---- s--- s--- s---  processing_state = 'claimed'
    public.execution_jobs         ---- ---- ---- si-- si-- si-- ---- siud  recording_id = 'waiting'
    public.execution_jobs         ---- ---- ---- si-- si-- si-- s--- siud  recording_id = 'held'
    public.recordings             ---- ---- ---- si-d si-- si-d ---- siud  name = 'of the member'
    public.recordings             ---- ---- ---- si-- si-- si-d ---- siud  name = 'of the service key'
    public.recording_versions     ---- ---- ---- si-- si-- si-- ---- si-d  true
    public.run_rows               ---- ---- ---- s--- s--- s--- ---- siud  true
    public.run_artefacts          ---- ---- ---- s--- s--- s--- ---- siud  true
    public.run_sites              ---- ---- ---- s--- s--- siud ---- siud  true
    public.scheduled_actions      ---- ---- ---- s--- s--- s--- ---- siud  prospect_id <> 'held'
    public.scheduled_actions      ---- ---- ---- s--- s--- s--- s--- siud  prospect_id = 'held'
    public.followup_schedules     ---- ---- ---- s--- s--- s--- ---- siud  true
    public.contact_preferences    ---- ---- ---- siud siud siud ---- siud  contact_id = 1
    public.contact_preferences    ---- ---- ---- s--- s--- siud ---- siud  contact_id is null
    public.do_not_contact         ---- ---- ---- siud siud siud ---- siud  true

    gleaner.queue                 ---- ---- ---- s--- s--- s--- s--- s---  true
    gleaner.jobs                  ---- ---- ---- ---- ---- ---- ---- siud  true
    gleaner.polls                 ---- ---- ---- ---- ---- ---- ---- siud  true
    gleaner.contact_settings      ---- ---- ---- ---- ---- ---- ---- s-u-  true
    gleaner.raw_request           ---- ---- ---- ---- ---- s--- ---- s---  true
    gleaner.ingest_refusal        ---- ---- ---- ---- ---- s--- ---- s---  true
    gleaner.ingest_memory         ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.activity_words        ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.forgotten_files       ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.media_reference       ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.forgotten_dump_files  ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.forgotten_artefacts   ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.audit                 ---- ---- ---- s--- s--- s--- ---- s---  key = '00000000-0000-0000-0000-0000000000f1'
    gleaner.audit                 ---- ---- ---- ---- s--- s--- ---- s---  key = '00000000-0000-0000-0000-0000000000f2'
    gleaner.audit                 ---- ---- ---- ---- ---- s--- ---- s---  queue = 'jobs'
    gleaner.late_result           ---- ---- ---- s--- s--- s--- ---- s---  key = '00000000-0000-0000-0000-0000000000f1'
    gleaner.late_result           ---- ---- ---- ---- s--- s--- ---- s---  key = '00000000-0000-0000-0000-0000000000f2'
    gleaner.late_result           ---- ---- ---- ---- ---- s--- ---- s---  queue = 'jobs'
    gleaner.rejected_row          ---- ---- ---- ---- ---- ---- ---- s---  true
    gleaner.batch_lease           ---- ---- ---- ---- ---- ---- ---- s---  true
    gleaner.bulk_range            ---- ---- ---- ---- ---- ---- ---- s---  true
    gleaner.operation             ---- ---- ---- ---- ---- ---- ---- s---  true
    gleaner.pause                 ---- s--- s--- s--- s--- s--- s--- s---  true
    gleaner.prune_mark            ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.change                ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.request               ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.api_key               ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.deleted_user          ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.adopted_table         ---- ---- ---- ---- ---- ---- ---- s---  true
    gleaner.migration             ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.migration_lock        ---- ---- ---- ---- ---- ---- ---- ----  true
    gleaner.system                ---- ---- ---- ---- ---- ---- ---- ----  true

    auth.users                    ---- ---- ---- ---- ---- ---- ---- ----  true
    auth.identities               ---- ---- ---- ---- ---- ---- ---- ----  true
    auth.sessions                 ---- ---- ---- ---- ---- ---- ---- ----  true
    auth.refresh_tokens           ---- ---- ---- ---- ---- ---- ---- ----  true
    auth.one_time_tokens          ---- ---- ---- ---- ---- ---- ---- ----  true
";

/// Functions, and the roles that may execute them; no role may execute a function that is not listed. Braces are alternatives, as
/// in a shell.
pub(super) const FUNCTIONS: &str = "
    auth.{jwt,role,uid}                                                   anon authenticated service_role
    public.{claim_next_pending_activity,claim_stale_activity}             authenticated service_role
    public.{unlock_stale_locks,reset_stale_locks,get_pending_actions}     authenticated service_role
    public.{normalize_email,normalize_phone}                              authenticated service_role
    gleaner.pause_queue                                                   authenticated service_role
    public.search_activities                                              authenticated service_role
    gleaner.match_words                                                   authenticated service_role
    gleaner.{me,sees}                                                     authenticated service_role
    gleaner.{is_administrator,is_member,batch_keys,range_keys,worker_session}    authenticated service_role
    gleaner.{link_activity,unlink_activity,with_address}                  authenticated service_role
    gleaner.{claim,start,progress,complete,fail,release,snooze}_activities authenticated service_role
    gleaner.complete_activities_many                                      authenticated service_role
    gleaner.{explain,next_due}_activities                                 authenticated service_role
    gleaner.assign_activities                                             authenticated service_role
    gleaner.{enqueue,recover}_activities                                  service_role
    gleaner.{bury,cancel,requeue,reschedule,stats}_{activities,jobs,polls,dumps,runs,followups,schedules} authenticated service_role
    gleaner.cancel_{activities,jobs,polls,dumps,runs,followups,schedules}_matching  authenticated service_role
    gleaner.{claim,start,progress,complete,fail,release,snooze}_{jobs,polls,dumps,runs,followups,schedules} service_role
    gleaner.complete_{jobs,polls,dumps,runs,followups,schedules}_many               service_role
    gleaner.explain_{jobs,polls,dumps,runs,followups,schedules}                     authenticated service_role
    gleaner.next_due_{jobs,polls,dumps,runs,followups,schedules}                    service_role
    gleaner.{enqueue,recover}_{jobs,polls,dumps,runs,followups,schedules}           service_role
    gleaner.{reserve_keys,register_range}_jobs                             service_role
    gleaner.prune_{jobs,dumps,runs,followups,schedules}                             authenticated service_role
    gleaner.{caller_role,caller_session,caller_uid,is_trusted}            service_role
    gleaner.{backoff,default_region,scoped_kinds,serves_auth,request_poll} service_role
    public.{fn_reflections,fn_workspace_create,fn_workspace_invite}        authenticated service_role
    public.fn_workspace_join                                              authenticated
    gleaner.{my_workspaces,owns_workspace}                                authenticated service_role
    gleaner.{same_label,match_context_items,refresh_context_items}        service_role
    public.{fn_block_create,fn_claim_next_dumps,fn_context_item_upsert_bulk,fn_relationship_upsert_bulk} service_role
    public.{create_scheduled_action,claim_due_actions,mark_processing}    service_role
    public.{cancel_pending_for_prospect,reset_stale_processing}           service_role
    public.{schedule_followup,schedule_recurring_followup}                authenticated service_role
    public.{cancel_scheduled_actions,approve_scheduled_actions}           authenticated service_role
    gleaner.contact_name                                                  authenticated service_role
    gleaner.{prepare_followup,begin_sending,refuse_contact,contact_of_prospect}  service_role
    gleaner.{prepare_schedule,advance_schedule}                           service_role
    gleaner.{reason_not_to_send,reason_to_wait}                           service_role
    public.save_recording                                                 authenticated service_role
    gleaner.{recording_problem,site_of}                                   authenticated service_role
    gleaner.{begin_run,record_row,store_artefact}                         service_role
    public.list_contact_addresses                                         service_role
";

/// What those functions return to each caller, when they see more than their caller does: `x` where the call returns a row.
/// Activities: f0 the worker's, f1 the member's, f2 the private member's, f9 without an owner; other agents may claim all but the
/// first.
pub(super) const CALLS: &str = "
    anon stranger former member private admin worker service
    - - - x x x x x  claim_stale_activity()
    - - - x x x x x  claim_next_pending_activity(null)
    - - - x - - - x  claim_next_pending_activity(1)
    - - - - x - - x  claim_next_pending_activity(2)
    - - - x x x x x  gleaner.claim_activities('a', 9) where raw_data @> '{\"of\": \"member\"}'
    - - - - x - - -  gleaner.claim_activities('a', 9) where raw_data @> '{\"of\": \"private\"}'
    - - - - x - - x  gleaner.next_due_activities(2)
    - - - x x x - x  gleaner.explain_activities('00000000-0000-0000-0000-0000000000f1') as e where e is not null
    - - - - x x - x  gleaner.explain_activities('00000000-0000-0000-0000-0000000000f2') as e where e is not null
    - - - x x x x x  gleaner.explain_activities('00000000-0000-0000-0000-0000000000f0') as e where e is not null
    - - - - - - x x  gleaner.release_activities('{00000000-0000-0000-0000-0000000000f0}', '{LEASE}') where outcome = 'done'
    - - - x x x - x  gleaner.link_activity('00000000-0000-0000-0000-0000000000f1', 1) where outcome = 'done'
    - - - - x x - x  gleaner.link_activity('00000000-0000-0000-0000-0000000000f2', 1) where outcome = 'done'
    - - - x x x - x  get_pending_actions() where prospect_id = 'waiting'
    - x x x x x x x  unlock_stale_locks()
    - - - - - x - -  gleaner.is_administrator() as yes where yes
    - - - x x x x -  gleaner.is_member() as yes where yes
    - - - x x x - x  gleaner.stats_activities()
    - - - x x x - x  gleaner.stats_runs()
    - - - - - x - x  gleaner.stats_jobs()
    - - - - - x - x  gleaner.stats_polls()
    - - - - - x - x  gleaner.pause_queue('runs') as o where o = 'done'
    - - - x x x - x  gleaner.explain_runs((select id from execution_jobs where recording_id = 'waiting')) as e where e is not null
    - - - - x x - x  gleaner.assign_activities('{00000000-0000-0000-0000-0000000000f2}', 1)
    - - - - x x - x  gleaner.requeue_activities('{00000000-0000-0000-0000-0000000000f2}')
    - - - - x x - x  gleaner.cancel_activities('{00000000-0000-0000-0000-0000000000f2}') where outcome = 'done'
    - - - - x x - x  gleaner.bury_activities('{00000000-0000-0000-0000-0000000000f2}') where outcome = 'done'
    - - - - x x - x  gleaner.reschedule_activities('{00000000-0000-0000-0000-0000000000f2}', now()) where outcome = 'done'
    - - - x - x - x  gleaner.cancel_activities('{00000000-0000-0000-0000-0000000000f1}') where outcome = 'done'
    - - - x x x - x  gleaner.cancel_activities('{00000000-0000-0000-0000-0000000000f9}') where outcome = 'done'
    - - - - - x - x  gleaner.cancel_activities_matching('{\"type\": \"call\"}') where outcome = 'done'
    - - - x x x - x  gleaner.cancel_runs((select array_agg(id) from execution_jobs)) where outcome = 'done'
    - - - x x x - x  save_recording('mine', '{\"steps\": [{\"do\": \"open\", \"url\": \"https://a.example\"}]}') as s where s is not null
    - - - - - x - x  gleaner.requeue_followups((select array_agg(id) from scheduled_actions))
    - - - x - x - x  gleaner.requeue_followups((select array_agg(id) from scheduled_actions where contact_id = 2))
    - - - - x x - x  gleaner.requeue_followups((select array_agg(id) from scheduled_actions where contact_id = 3))
    - - - x - x - x  gleaner.reschedule_followups((select array_agg(id) from scheduled_actions where contact_id = 2), '2030-01-01')
    - - - x - x - x  cancel_scheduled_actions((select array_agg(id) from scheduled_actions where contact_id = 2))
    - - - x - x - x  approve_scheduled_actions((select array_agg(id) from scheduled_actions where contact_id = 2))
    - - - x - x - x  schedule_followup('contact:2', now())
    - - - x x x - x  schedule_followup('contact:1', now())
    - - - x - x - x  schedule_recurring_followup('contact:2', '@daily')
    - - - x - x - x  gleaner.cancel_schedules((select array_agg(id) from followup_schedules))
    - - - - - x - x  gleaner.cancel_jobs('{1}')
    - - - - - x - x  gleaner.prune_runs(1, '1 day')
    - x x x x x x x  gleaner.me()
    - - - - - - - x  gleaner.request_poll((select id from ingestion_providers))
";
