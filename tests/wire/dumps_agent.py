"""An agent for docs/reference/systems/dumps.md with the real supabase-py, from captured text to finished analysis.

Its extraction needs no model. Ends with status 0 when everything it promises was seen.
"""

import asyncio
import os
import re
import uuid

from supabase import AsyncClient, acreate_client


class AgentProcessor:
    def __init__(self, worker_id: str, supabase: AsyncClient):
        self.worker_id = worker_id
        self.supabase = supabase
        self.seen: list[str] = []

    async def run_until(self, done: asyncio.Event):
        """Main processing loop"""
        while not done.is_set():
            # Claim work
            dumps = await self.claim_dumps()

            # Process each dump
            for dump_entry in dumps:
                await self.process_dump(dump_entry)

            # Wait before next poll
            await asyncio.sleep(0.05)

    async def claim_dumps(self):
        """Atomically claim dumps from queue"""
        result = await self.supabase.rpc(
            "fn_claim_next_dumps",
            {
                "p_worker_id": self.worker_id,
                "p_limit": 10,
            },
        ).execute()
        return result.data or []

    async def process_dump(self, queue_entry):
        """Process a single dump through all pipelines"""
        dump_id = queue_entry["dump_id"]
        self.seen.append(dump_id)

        try:
            # Mark as processing
            await self.update_queue_state(queue_entry["id"], "processing")

            # Get dump content
            dump = await self.fetch_dump(dump_id)

            # P1: Extract substrate
            await self.extract_blocks(dump)
            await self.extract_context_items(dump)

            # Mark complete
            await self.update_queue_state(queue_entry["id"], "completed")

        except Exception as e:
            # Mark failed for retry
            await self.update_queue_failed(queue_entry["id"], str(e), queue_entry["attempts"] + 1)

    async def update_queue_state(self, entry_id, state):
        await self.supabase.table("agent_processing_queue").update({"processing_state": state}).eq("id", entry_id).execute()

    async def update_queue_failed(self, entry_id, message, attempts):
        failed = {"processing_state": "failed", "error_message": message, "attempts": attempts}
        await self.supabase.table("agent_processing_queue").update(failed).eq("id", entry_id).execute()

    async def fetch_dump(self, dump_id):
        return (await self.supabase.table("raw_dumps").select("*").eq("id", dump_id).single().execute()).data

    async def extract_blocks(self, dump):
        """P1: Extract structured insights"""
        if "unreadable" in dump["body_md"]:
            raise ValueError("nothing to be made of this")
        for sentence in dump["body_md"].split(". "):
            await self.supabase.rpc("fn_block_create", {
                "p_basket_id": dump["basket_id"],
                "p_title": sentence[:20],
                "p_content": sentence,
                "p_semantic_type": "insight",
                "p_confidence_score": 0.8,
            }).execute()

    async def extract_context_items(self, dump):
        """P1: Extract entities and concepts"""
        entities = re.findall(r"[A-Z][a-z]+", dump["body_md"])

        # Bulk create via RPC
        if entities:
            await self.supabase.rpc("fn_context_item_upsert_bulk", {
                "p_basket_id": dump["basket_id"],
                "p_items": [{"kind": "person", "label": e, "metadata": {"length": len(e)}} for e in entities],
            }).execute()


async def main():
    supabase = await acreate_client(os.environ["API_URL"], os.environ["SERVICE_ROLE_KEY"])

    async def add(table, rows):
        return (await supabase.table(table).insert(rows).execute()).data

    async def rows(table):
        return (await supabase.table(table).select("*").eq("basket_id", basket).order("created_at").execute()).data

    [workspace] = await add("workspaces", {"name": f"py {uuid.uuid4()}"})
    basket = (await add("baskets", {"workspace_id": workspace["id"]}))[0]["id"]

    # The front end shows the state of a dump; here it is pushed.
    changed = asyncio.Event()
    channel = supabase.channel("queue-status")
    channel.on_postgres_changes("UPDATE", lambda _: changed.set(), schema="public", table="agent_processing_queue", filter=f"basket_id=eq.{basket}")
    subscribed = asyncio.Event()
    await channel.subscribe(lambda status, error: subscribed.set() if status == "SUBSCRIBED" else None)
    await asyncio.wait_for(subscribed.wait(), 15)

    texts = [f"Ada met Bob. Meeting {n} went well" for n in range(11)] + ["unreadable"]
    dumps = [row["id"] for row in await add("raw_dumps", [{"basket_id": basket, "body_md": text} for text in texts])]
    done = asyncio.Event()
    agents = [AgentProcessor(f"worker-{n}", supabase) for n in (1, 2)]
    work = [asyncio.create_task(agent.run_until(done)) for agent in agents]

    async def settled():
        while True:
            await asyncio.wait_for(changed.wait(), 15)
            changed.clear()
            queue = await rows("agent_processing_queue")
            if all(entry["processing_state"] in ("completed", "failed") for entry in queue):
                return queue

    try:
        queue = await settled()
    finally:
        done.set()
        await asyncio.gather(*work)

    assert sorted(agents[0].seen + agents[1].seen) == sorted(dumps), "each dump once"
    states = {entry["dump_id"]: entry for entry in queue}
    failed = states.pop(dumps[-1])
    assert (failed["processing_state"], failed["attempts"], failed["error_message"]) == ("failed", 1, "nothing to be made of this"), failed
    assert all(entry["processing_state"] == "completed" and entry["completed_at"] for entry in states.values()), states
    # What several dumps say is kept once.
    assert len(await rows("blocks")) == 12, "one sentence in common, and eleven of their own"
    items = await rows("context_items")
    assert sorted((item["label"], item["metadata"]["length"]) for item in items) == [("Ada", 3), ("Bob", 3), ("Meeting", 7)], items
    await supabase.remove_all_channels()
    print(f"supabase-py: {len(dumps)} dumps by two workers: ok")


asyncio.run(main())
