// The keyboard: Ctrl K anywhere, single keys outside of fields.
import { choice } from './theme.svelte';
import { pages } from './pages';
import { go } from './router.svelte';

class Shortcuts {
    palette = $state(false);
    help = $state(false);
}

export const shortcuts = new Shortcuts();

/** `g` waits this long for its second key. */
const SECOND = 1500;
let pressed = 0;

const typing = (target: EventTarget | null) => target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** The items of a list that `j` and `k` walk through. */
const items = () => [...document.querySelectorAll<HTMLElement>('main [data-item]')];

function move(by: number): void {
    const all = items();
    const now = all.findIndex(item => item.contains(document.activeElement));
    const next = all[Math.max(0, Math.min(all.length - 1, now + by))] ?? all[0];
    const to = next?.matches('a, [tabindex]') ? next : next?.querySelector<HTMLElement>('a, button, [tabindex]');
    to?.focus();
    next?.scrollIntoView({ block: 'nearest' });
}

/** Presses the button of the item at hand, or of the page, that has this key. */
function press(letter: string): boolean {
    const item = items().find(one => one.contains(document.activeElement)) ?? document.querySelector('main');
    const button = item?.querySelector<HTMLElement>(`[data-key="${letter}"]:not(:disabled)`);
    button?.click();
    return button !== undefined && button !== null;
}

function hear(event: KeyboardEvent): void {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
        event.preventDefault();
        shortcuts.palette = !shortcuts.palette;
        return;
    }
    if (!choice.keys || event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector('dialog[open]')) return;
    const letter = event.key;
    if (Date.now() - pressed < SECOND) {
        pressed = 0;
        const page = pages.find(page => page.key === letter);
        if (page) { event.preventDefault(); go(`/${page.name}`); }
        return;
    }
    if (letter === 'g') pressed = Date.now();
    else if (letter === '?') shortcuts.help = true;
    else if (letter === '/') {
        const search = document.querySelector<HTMLInputElement>('main input[type=search]');
        event.preventDefault();
        if (search) search.focus(); else shortcuts.palette = true;
    } else if (letter === 'j') move(1);
    else if (letter === 'k') move(-1);
    else if (letter === 'Escape') document.querySelector<HTMLElement>('main [data-back]')?.click();
    else if (/^[a-z]$/.test(letter) && press(letter)) event.preventDefault();
}

export function listen(): () => void {
    addEventListener('keydown', hear);
    return () => removeEventListener('keydown', hear);
}
