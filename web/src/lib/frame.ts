// In a frame of a configured origin the page says where its project is, so that the host can work its queue.
import { frames, key, url } from './settings';

export function tellParent(): void {
    if (window.parent === window) return;
    const payload = { appName: 'gleaner', url, anonKey: key, tables: ['activities'], filters: { activities: 'processing_status=eq.raw' } };
    // The browser delivers the message to the parent only if it has that origin.
    for (const origin of frames) window.parent.postMessage({ type: 'SUPABASE_CONFIG', payload }, origin);
}
