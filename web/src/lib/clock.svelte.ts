// The time, for "2 min ago". One timer for the whole page; a hidden page needs none.
class Clock {
    now = $state(Date.now());
    constructor() {
        setInterval(() => { if (!document.hidden) this.now = Date.now(); }, 1000);
        document.addEventListener('visibilitychange', () => { this.now = Date.now(); });
    }
}

export const clock = new Clock();

export function span(seconds: number): string {
    const s = Math.max(0, seconds);
    if (s < 90) return `${Math.round(s)} s`;
    if (s < 5400) return `${Math.round(s / 60)} min`;
    if (s < 172_800) return `${Math.round(s / 3600)} h`;
    return `${Math.round(s / 86_400)} d`;
}

export function ago(at: string | number | Date, now = clock.now): string {
    const seconds = (now - new Date(at).getTime()) / 1000;
    if (seconds < -5) return `in ${span(-seconds)}`;
    return seconds < 5 ? 'just now' : `${span(seconds)} ago`;
}

/** 14:03; with the day when it is not today. */
export function at(when: string | number | Date, now = clock.now): string {
    const date = new Date(when);
    const time = date.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
    return date.toDateString() === new Date(now).toDateString() ? time : `${day(date)}, ${time}`;
}

export function second(when: number): string {
    return new Date(when).toLocaleTimeString('en-GB');
}

export function exact(when: string | number | Date): string {
    return new Date(when).toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'long' });
}

export function day(when: string | number | Date, now = clock.now): string {
    const date = new Date(when);
    const days = Math.round((new Date(now).setHours(0, 0, 0, 0) - new Date(date).setHours(0, 0, 0, 0)) / 86_400_000);
    if (days === 0) return 'Today';
    if (days === 1) return 'Yesterday';
    if (days === -1) return 'Tomorrow';
    const year = date.getFullYear() === new Date(now).getFullYear() ? undefined : 'numeric';
    return date.toLocaleDateString('en-GB', { weekday: 'short', day: 'numeric', month: 'short', year });
}
