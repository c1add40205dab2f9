/** Copies text. Browsers offer the clipboard on secure origins only; the old way works on the others. */
export async function copy(text: string): Promise<boolean> {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        const box = document.createElement('textarea');
        box.value = text;
        box.className = 'hidden-text';
        (document.querySelector('dialog[open]') ?? document.body).append(box);
        box.select();
        const copied = document.execCommand('copy');
        box.remove();
        return copied;
    }
}
