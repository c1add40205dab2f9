-- One order through its life, at a psql prompt. Run after `gleaner attach examples/orders/orders.toml`:
--   psql "$(gleaner status -o url)" -f examples/orders/work.sql

\echo 'Ada takes her own, then rows without an owner, then rows that Grace left waiting longer than she allows:'
select id, packer, size, state, lease from gleaner.claim_orders('ada-1', p_limit => 10, p_owner => 'ada', p_started => true);

\echo 'Why can she not have the last one?'
select gleaner.explain_orders(4, p_owner => 'ada') ->> 'reason' as reason;

select lease as lease from orders where id = 1 \gset

\echo 'A sign of life, with a stage to show. It extends the lease when less than half of the hold is left:'
select outcome, status from gleaner.progress_orders(1, :lease, 'wrapping', 50);

\echo 'Done, and once more because the answer got lost, and then with a wrong lease:'
select outcome, status from gleaner.complete_orders(1, :lease, '{"parcel": "A17"}');
select outcome, status from gleaner.complete_orders(1, :lease, '{"parcel": "A17"}');
select outcome, status from gleaner.complete_orders(2, :lease - 1, '{"parcel": "B1"}');

\echo 'A failure waits for its next try:'
select lease as lease from orders where id = 2 \gset
select outcome, status from gleaner.fail_orders(2, :lease, 'no box large enough');

\echo 'Work that was taken and cannot be done now is given back, at no cost:'
select lease as lease from orders where id = 3 \gset
select outcome, status from gleaner.release_orders('{3}', array[:lease]::bigint[]);

\echo 'The table says it all:'
select id, packer, state, attempts, receipt, problem from orders order by id;
