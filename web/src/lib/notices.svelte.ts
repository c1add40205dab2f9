// What the page says about an act: done, with a way back while there is one, or why it failed.
export type Notice = { id: number; text: string; failed: boolean; undo?: () => unknown };

class Notices {
    list = $state<Notice[]>([]);
    #next = 1;

    say(text: string, undo?: () => unknown): void { this.#add({ text, failed: false, undo }, undo ? 10_000 : 5_000); }
    fail(error: unknown): void {
        const { message, hint } = error as { message?: string; hint?: string };
        this.#add({ text: [message ?? String(error), hint].filter(Boolean).join(' '), failed: true }, 15_000);
    }
    close(id: number): void { this.list = this.list.filter(one => one.id !== id); }

    #add(notice: Omit<Notice, 'id'>, stays: number): void {
        const id = this.#next++;
        this.list = [...this.list.slice(-2), { ...notice, id }];
        setTimeout(() => this.close(id), stays);
    }
}

export const notices = new Notices();

/** Runs an act and says when it failed. */
export async function attempt<T>(act: () => Promise<T>): Promise<T | undefined> {
    try {
        return await act();
    } catch (error) {
        notices.fail(error);
        return undefined;
    }
}
