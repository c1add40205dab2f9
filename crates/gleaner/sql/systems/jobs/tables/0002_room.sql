-- A completion enters its key anew, next to the old entry, and hundreds of neighbours at a time: half-filled pages take them in
-- without being split. Pages that are full already are split once, as before.
alter index gleaner.jobs_pkey set (fillfactor = 50);
