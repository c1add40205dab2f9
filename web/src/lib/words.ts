// The words and marks of states, the same on every page.
export type State = 'waiting' | 'scheduled' | 'busy' | 'done' | 'failed' | 'dead' | 'cancelled' | 'paused';

export const words: Record<State, string> = {
    waiting: 'Waiting', scheduled: 'Scheduled', busy: 'In work', done: 'Done', failed: 'Failed', dead: 'Given up', cancelled: 'Cancelled', paused: 'Paused',
};
export const tones: Record<State, string> = {
    waiting: 'rest', scheduled: 'plan', busy: 'busy', done: 'good', failed: 'warn', dead: 'bad', cancelled: 'rest', paused: 'rest',
};

/** The engine's states in our words. */
export const ofEngine: Record<string, State> = {
    ready: 'waiting', scheduled: 'scheduled', running: 'busy', expired: 'busy', failed: 'failed', backing_off: 'failed', dead: 'dead', done: 'done',
    finished: 'done', cancelled: 'cancelled', paused: 'paused', orphan: 'waiting', unfilled: 'waiting',
};

const kinds: Record<string, string> = {
    email: 'E-mail', call: 'Call', sms: 'SMS', meeting: 'Meeting', note: 'Note', task: 'Task', whatsapp: 'WhatsApp', other: 'Other',
};
export const kinded = (kind: string | null | undefined): string => kind ? kinds[kind] ?? kind.replaceAll('_', ' ') : '';
export const activityKinds = Object.keys(kinds);

export function number(n: number | string | null | undefined): string {
    if (n === null || n === undefined) return '–';
    return typeof n === 'string' ? n : n.toLocaleString('en');
}

export const capped = (n: number | null | undefined, isCapped = false): string => `${number(n)}${isCapped ? '+' : ''}`;
export const counted = (n: number, word: string, many = `${word}s`): string => `${number(n)} ${n === 1 ? word : many}`;
export const percent = (share: number | null | undefined, digits = 0): string => share === null || share === undefined ? '–' : `${(share * 100).toFixed(digits)} %`;

export function size(bytes: number): string {
    return bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(0)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
