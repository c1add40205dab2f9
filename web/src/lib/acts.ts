// What people may do to a row of a queue.
import { post } from './api';
import { Failure } from './failure';

type Answer = { key: string; outcome: string; status: string | null };

/** Acts on one row. An answer that changed nothing is an error that says why. */
export async function act(queue: string, verb: 'requeue' | 'cancel' | 'bury' | 'assign' | 'reschedule', key: string, more: object = {}): Promise<Answer> {
    const answer = await post<{ items?: Answer[] } & Answer>(`/v1/queues/${encodeURIComponent(queue)}/${verb}`, { keys: [key], ...more });
    const one = answer.items ? answer.items[0] : answer;
    if (!one || one.outcome === 'gone') throw new Failure('It is no longer there, or you may not see it.', 410);
    if (one.outcome === 'already') throw new Failure(`It is ${one.status ?? 'finished'} already.`, 409);
    if (one.outcome === 'lost') throw new Failure('It changed in the meantime.', 409);
    return one;
}

/** A new due time, given in the reader's zone. */
export const reschedule = (queue: string, key: string, due: string): Promise<Answer> => act(queue, 'reschedule', key, { due: new Date(due).toISOString() });
