import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig, type Plugin } from 'vite';

/** Files are compressed once, here, and not at every request. */
function compress(): Plugin {
    return {
        name: 'compress',
        apply: 'build',
        buildStart() { rmSync('dist/assets', { recursive: true, force: true }); },
        closeBundle() {
            for (const name of readdirSync('dist/assets')) {
                const path = join('dist/assets', name);
                const content = readFileSync(path);
                writeFileSync(`${path}.br`, brotliCompressSync(content));
                writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }));
            }
        },
    };
}

// `npm run dev` shows the page with hot reload, with the data of a server that runs here.
const server = process.env.API_URL ?? 'http://127.0.0.1:54321';
const routes = ['/rest', '/auth', '/realtime', '/functions', '/v1', '/health', '/metrics'];

export default defineConfig({
    plugins: [svelte(), compress()],
    // The folder holds a .gitignore.
    build: { target: 'es2022', emptyOutDir: false, modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
    server: { proxy: Object.fromEntries(routes.map(route => [route, { target: server, ws: true }])) },
});
