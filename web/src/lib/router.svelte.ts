// The URL is the state of the page: its path, and filters in its query.
import { tick } from 'svelte';

class Place {
    path = $state(location.pathname);
    search = $state(location.search);
    readonly query = $derived(new URLSearchParams(this.search));

    get(name: string): string { return this.query.get(name) ?? ''; }

    read(): void {
        this.path = location.pathname;
        this.search = location.search;
    }
}

export const place = new Place();

/** Goes to a page of ours. The heading of the new page gets the focus. */
export function go(to: string, { replace = false } = {}): void {
    const from = location.pathname;
    history[replace ? 'replaceState' : 'pushState'](null, '', to);
    place.read();
    if (location.pathname !== from) {
        scrollTo(0, 0);
        void tick().then(focusHeading);
    }
}

export function focusHeading(): void {
    const heading = document.querySelector<HTMLElement>('main h1');
    heading?.setAttribute('tabindex', '-1');
    heading?.focus({ preventScroll: true });
}

/** Changes filters in the URL; an empty value removes one. Typing in a search box makes no history. */
export function filter(changes: Record<string, string>, { replace = true } = {}): void {
    const query = new URLSearchParams(place.search);
    for (const [name, value] of Object.entries(changes)) value ? query.set(name, value) : query.delete(name);
    const text = query.toString();
    go(place.path + (text ? `?${text}` : ''), { replace });
}

/** Links of ours change the page without loading it; with a modifier key they do what links do. */
export function followLinks(event: MouseEvent): void {
    const link = (event.target as Element | null)?.closest?.('a');
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute('download') || link.origin !== location.origin || link.hasAttribute('data-outside')) return;
    event.preventDefault();
    go(link.pathname + link.search + link.hash);
}

addEventListener('popstate', () => place.read());
