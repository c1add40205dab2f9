// Channels: what is known of one, and how to set it up at its provider.
import { rows } from './api';
import { supabase } from './supabase';

export type Channel = {
    id: string; name: string; provider: string; is_active: boolean; sales_id: number | null; owner: string | null; auto_create_contacts: boolean;
    settings: Record<string, unknown>; secrets_expire: Record<string, string>; state: string; state_detail: string | null; problems: string[]; cautions: string[];
    created_at: string; changed_at: string;
};
export type Opened = Channel & { ingestion_key: string; webhook_url: string; url_with_overrides: string | null };
export type Setting = { name: string; secret: boolean; required: boolean; about: string };
export type Provider = { code: string; title: string; settings: Setting[] };
export type Refusal = { at: string; reason: string; status: number; count: number; last_client: string | null; detail: string | null };
export type Tested = { passed: boolean; base: string; status: number | null; activity_id: string | null; verdict: string; advice: string[] };

export const path = (id: string) => `/v1/channels/${encodeURIComponent(id)}`;

/** When it last received something real; null if it never did. */
export async function lastEvent(channel: string): Promise<string | null> {
    const query = supabase.from('activities').select('created_at').eq('provider_id', channel).or('metadata->>test.is.null,metadata->>test.neq.true')
        .order('created_at', { ascending: false }).limit(1);
    return (await rows<{ created_at: string }[]>(query))[0]?.created_at ?? null;
}

const steps: Record<string, string[]> = {
    twilio: ['Open the Twilio console, Phone Numbers, your number.', 'Under Messaging, set “A message comes in” to this URL, method HTTP POST.',
        'For calls, set it as the recording status callback of your call flow.', 'Save, then send a message to the number.'],
    postmark: ['Open your server in Postmark, the inbound stream, Settings.', 'Paste this URL as the webhook.', 'Send a mail to the inbound address.'],
    sendgrid: ['Open SendGrid, Settings, Inbound Parse, Add Host & URL.', 'Paste this URL and choose your receiving domain.', 'Send a mail to any address of that domain.'],
    mailgun: ['Open Mailgun, Receiving, Create Route.', 'Choose the recipients, and forward to this URL.', 'Send a mail to one of them.'],
    telegram: ['Call setWebhook of your bot with this URL and the secret token you entered.', 'Write to the bot.'],
    whatsapp: ['Open your app at Meta, WhatsApp, Configuration.', 'Paste this URL as the callback URL, and the verify token you entered.', 'Subscribe to the field “messages”, then write to the number.'],
    gmail: ['Follow the consent link that `gleaner channels show` prints, and allow reading.', 'Send a mail to the mailbox.'],
    generic: ['Send a POST request with JSON to this URL, signed as the settings say.', 'The manual page “Connect a sender” has an example with curl.'],
};

export const stepsFor = (provider: string): string[] => steps[provider] ?? ['Paste this URL at the sender.'];
