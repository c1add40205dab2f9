// What the server wrote into the page.
type Settings = { key: string; frames: string[]; version: string };

const written = document.querySelector('meta[name=gleaner]')?.getAttribute('content');
const settings: Settings = { key: '', frames: [], version: '', ...(written ? JSON.parse(written) : {}) };

/** Where the project is. `npm run dev` proxies to a server, whose key is given in the environment. */
export const url = location.origin;
export const key = settings.key || import.meta.env.VITE_ANON_KEY || 'missing';
export const frames = settings.frames;
export const version = settings.version;
