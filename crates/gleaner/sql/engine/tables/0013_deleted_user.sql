-- Users who were deleted: their tokens would otherwise be good until they expire, as nothing says any more that they are not.
create table gleaner.deleted_user (
    id uuid        not null,
    at timestamptz not null default clock_timestamp(),
    constraint deleted_user_pkey primary key (id)
);
comment on table gleaner.deleted_user is 'Users who were deleted; their tokens are refused.';
revoke all on gleaner.deleted_user from public, anon, authenticated, service_role;
