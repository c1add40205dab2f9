// The pages, by the first part of their URL. Each is loaded when it is opened.
import type { Component } from 'svelte';

type Loaded = Promise<{ default: Component<any> }>;
export type Page = {
    name: string; title: string; load: () => Loaded;
    /** The page of one thing: `/activity/{id}`. */
    item?: () => Loaded;
    /** Where it stands in the navigation; without it, nowhere. */
    group?: 'Work' | 'In' | 'System';
    /** Pressed after `g`. */
    key?: string;
    /** Of use to administrators only. */
    admin?: boolean;
};

export const pages: Page[] = [
    { name: 'sign-in', title: 'Sign in', load: () => import('../pages/SignIn.svelte') },
    { name: 'invite', title: 'Welcome', load: () => import('../pages/SetPassword.svelte') },
    { name: 'reset', title: 'New password', load: () => import('../pages/SetPassword.svelte') },
    { name: 'code', title: 'Sign in with a code', load: () => import('../pages/Code.svelte') },
    { name: 'me', title: 'Me', load: () => import('../pages/Me.svelte') },
    { name: 'activity', title: 'Activity', group: 'Work', key: 'a', load: () => import('../pages/Activity.svelte'), item: () => import('../pages/ActivityItem.svelte') },
    { name: 'unmatched', title: 'Unmatched', group: 'Work', key: 'u', load: () => import('../pages/Unmatched.svelte') },
    { name: 'contacts', title: 'Contacts', group: 'Work', key: 'c', load: () => import('../pages/Contacts.svelte'), item: () => import('../pages/ContactItem.svelte') },
    { name: 'followups', title: 'Follow-ups', group: 'Work', key: 'f', load: () => import('../pages/Followups.svelte') },
    { name: 'channels', title: 'Channels', group: 'In', load: () => import('../pages/Channels.svelte'), item: () => import('../pages/Channel.svelte') },
    { name: 'dumps', title: 'Dumps', group: 'In', load: () => import('../pages/Dumps.svelte'), item: () => import('../pages/Dump.svelte') },
    { name: 'overview', title: 'Overview', group: 'System', key: 'o', load: () => import('../pages/Overview.svelte') },
    { name: 'queues', title: 'Queues', group: 'System', key: 'q', load: () => import('../pages/Queues.svelte'), item: () => import('../pages/Queue.svelte') },
    { name: 'agents', title: 'Agents', group: 'System', load: () => import('../pages/Agents.svelte') },
    { name: 'dead', title: 'Dead letters', group: 'System', key: 'd', load: () => import('../pages/Dead.svelte') },
    { name: 'audit', title: 'Audit', group: 'System', load: () => import('../pages/Audit.svelte') },
    { name: 'settings', title: 'Settings', group: 'System', load: () => import('../pages/Settings.svelte'), item: () => import('../pages/Settings.svelte') },
];

export const find = (name: string): Page | undefined => pages.find(page => page.name === name);
export const groups = ['Work', 'In', 'System'] as const;
