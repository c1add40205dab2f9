// One shape for everything that can go wrong with a request, from the native API, REST or sign-in.
export class Failure extends Error {
    constructor(message: string, readonly status = 0, readonly code = '', readonly hint = '', readonly mistakes: string[] = [], readonly request = '') {
        super(message);
    }
    /** The route does not exist on this server. */
    get isMissing(): boolean { return this.status === 404 && this.code === ''; }
    get isForbidden(): boolean { return this.status === 403 || this.code === '42501'; }
}

const AWAY = 'The server does not answer. It may be restarting; this page tries again by itself.';

export function failure(error: unknown): Failure {
    if (error instanceof Failure) return error;
    const { message = '', status = 0, code = '', hint = '' } = (error ?? {}) as { message?: string; status?: number; code?: string; hint?: string };
    if (error instanceof TypeError || /failed to fetch|networkerror|load failed|fetch failed/i.test(message)) return new Failure(AWAY);
    return new Failure(sentence(message || String(error)), status, code ?? '', hint ?? '');
}

export function sentence(text: string): string {
    const trimmed = text.trim();
    const first = trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
    return /[.!?…]$/.test(first) ? first : `${first}.`;
}
