"""What `scripts/schemathesis` changes in the requests that schemathesis makes up."""

import zlib

import schemathesis

# Claims and looks that wait would spend the run's time waiting.
WAITS = {"wait_seconds": 0.05, "wait": 0.05}
# Of numbers and of uuids, with owners and without; none: as made up.
QUEUES = ("jobs", "activities", "dumps", None)


@schemathesis.hook
def before_call(context, case, kwargs):
    # Most made-up names lead nowhere: an existing queue gets the request further in.
    if case.path_parameters and "queue" in case.path_parameters:
        chosen = QUEUES[zlib.crc32(repr(case.body).encode("utf-8", "replace")) % len(QUEUES)]
        case.path_parameters["queue"] = chosen or case.path_parameters["queue"]
    if isinstance(case.body, dict):
        for name, most in WAITS.items():
            value = case.body.get(name)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                case.body[name] = min(value, most)
