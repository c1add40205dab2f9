"""Speech to text without a network: a command of a pipeline, on PocketSphinx and the English model it brings.

Reads the item as JSON on standard input, with `audio.path`, a WAV file of 16 kHz mono. Writes `{"text": …}` on standard
output, and how far it is on standard error. Exit code 65 says that this recording will never be understood.
"""

import json
import sys
import wave

from pocketsphinx import Decoder

# A quarter of a second at a time.
SAMPLES = 4000
DATA_ERROR = 65


def main() -> int:
    item = json.load(sys.stdin)
    with wave.open(item["audio"]["path"], "rb") as sound:
        if (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) != (16000, 1, 2):
            print("the recording is not 16 kHz mono of 16 bits", file=sys.stderr)
            return DATA_ERROR
        decoder = Decoder(samprate=16000, loglevel="ERROR")
        decoder.start_utt()
        told = 0
        while piece := sound.readframes(SAMPLES):
            decoder.process_raw(piece)
            percent = 100 * sound.tell() // max(sound.getnframes(), 1)
            if percent >= told + 10:
                told = percent
                heard = decoder.hyp()
                # What was understood so far reaches people at once.
                partial = {"transcript": heard.hypstr} if heard else {}
                print(json.dumps({"stage": "listening", "percent": percent, "partial": partial}), file=sys.stderr, flush=True)
        decoder.end_utt()
    heard = decoder.hyp()
    print(json.dumps({"text": heard.hypstr if heard else ""}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
