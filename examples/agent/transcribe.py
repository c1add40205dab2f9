"""Speech to text without a network: a command of a pipeline, on PocketSphinx and the English model it brings.

Reads the item as JSON on standard input, with `audio.path`, a WAV file of 16 kHz mono. Writes `{"text": …}` on standard
output, and on standard error how far it is and what it heard so far. Exit code 65 says that this recording will never be
understood.
"""

import json
import sys
import wave

from pocketsphinx import Decoder, Segmenter

DATA_ERROR = 65


def understand(decoder: Decoder, sound: bytes) -> str:
    decoder.start_utt()
    # In one piece: it is understood better when its loudness is known beforehand.
    decoder.process_raw(sound, full_utt=True)
    decoder.end_utt()
    heard = decoder.hyp()
    return heard.hypstr if heard else ""


def main() -> int:
    item = json.load(sys.stdin)
    with wave.open(item["audio"]["path"], "rb") as sound:
        if (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) != (16000, 1, 2):
            print("the recording is not 16 kHz mono of 16 bits", file=sys.stderr)
            return DATA_ERROR
        seconds = sound.getnframes() / 16000
    decoder = Decoder(samprate=16000, loglevel="FATAL")
    said = []
    # Speech between pauses, one after the other: a long call shows what was said while it goes on.
    with open(item["audio"]["path"], "rb") as stream:
        stream.seek(44)
        for speech in Segmenter(sample_rate=16000).segment(stream):
            if text := understand(decoder, speech.pcm):
                said.append(text)
            percent = round(100 * speech.end_time / max(seconds, 0.1))
            progress = {"stage": "listening", "percent": percent, "partial": {"transcript": "\n".join(said)}}
            print(json.dumps(progress), file=sys.stderr, flush=True)
    if not said:
        # No pauses to be found: the whole of it, then.
        with wave.open(item["audio"]["path"], "rb") as sound:
            said = [understand(decoder, sound.readframes(sound.getnframes()))]
    print(json.dumps({"text": "\n".join(said)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
