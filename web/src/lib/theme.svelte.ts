// Light, dark, or as the system has it.
export type Theme = 'system' | 'light' | 'dark';

class Choice {
    theme = $state<Theme>((localStorage.getItem('gleaner.theme') as Theme | null) ?? 'system');
    /** Single keys as shortcuts; some readers' tools use them for themselves. */
    keys = $state(localStorage.getItem('gleaner.keys') !== 'off');

    set(theme: Theme): void {
        this.theme = theme;
        localStorage.setItem('gleaner.theme', theme);
        this.apply();
    }
    setKeys(on: boolean): void {
        this.keys = on;
        localStorage.setItem('gleaner.keys', on ? 'on' : 'off');
    }
    apply(): void {
        if (this.theme === 'system') delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = this.theme;
    }
}

export const choice = new Choice();
choice.apply();
