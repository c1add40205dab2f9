import { createClient } from '@supabase/supabase-js';
import { key, url } from './settings';

export const supabase = createClient(url, key, {
    auth: { detectSessionInUrl: false },
    // A server that restarts is back within a second; thousands of pages should not find it in the same one.
    realtime: { reconnectAfterMs: tries => Math.min(500 * 2 ** (tries - 1), 10_000) * (0.75 + Math.random() / 2) },
});
