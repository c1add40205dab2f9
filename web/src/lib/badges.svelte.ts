// The small numbers in the navigation.
class Badges {
    of = $state<Record<string, string>>({});
    set(name: string, count: number, isCapped = false): void {
        // Written without being read: it is called from effects.
        this.of[name] = count > 0 ? `${count.toLocaleString('en')}${isCapped ? '+' : ''}` : '';
    }
}

export const badges = new Badges();
