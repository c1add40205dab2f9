//! Decodes audio files. The format is detected from the first bytes, because what a row or a header says is often wrong.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::Path;

use super::{Error, g711};

/// Receives the sample rate and a chunk of mono audio.
pub(super) type Sink<'a> = &'a mut dyn FnMut(u32, &[f32]) -> Result<(), Error>;

/// Samples passed on at a time.
const PIECE: usize = 16_384;
/// No telephone or studio recording has more.
const MOST_CHANNELS: usize = 32;

pub(super) fn decode(path: &Path, sink: Sink<'_>) -> Result<&'static str, Error> {
    let mut file = File::open(path).map_err(broken)?;
    let mut head = [0_u8; 64];
    let mut read = 0;
    while read < head.len() {
        match file.read(&mut head[read..]).map_err(broken)? {
            0 => break,
            n => read += n,
        }
    }
    file.rewind().map_err(broken)?;
    let (head, reader) = (&head[..read], BufReader::new(file));
    match head {
        [] => Err(Error::Silent),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => wav(path, reader, sink),
        [b'f', b'L', b'a', b'C', ..] => flac(reader, sink),
        [b'O', b'g', b'g', b'S', ..] if contains(head, b"OpusHead") => Err(Error::Unsupported("Ogg Opus")),
        [b'O', b'g', b'g', b'S', ..] => vorbis(reader, sink),
        [b'I', b'D', b'3', ..] | [0xff, 0xe2..=0xff, ..] => mp3(reader, sink),
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Err(Error::Unsupported("MP4 or M4A (AAC)")),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Err(Error::Unsupported("WebM or Matroska")),
        [b'#', b'!', b'A', b'M', b'R', ..] => Err(Error::Unsupported("AMR")),
        other => Err(Error::Unknown(hex::encode(&other[..other.len().min(8)]))),
    }
}

fn contains(head: &[u8], word: &[u8]) -> bool {
    head.windows(word.len()).any(|window| window == word)
}

fn broken(error: impl std::fmt::Display) -> Error {
    Error::Broken(error.to_string())
}

/// Mixes the channels down to mono, chunk by chunk.
pub(super) struct Mixer<'a> {
    rate: u32,
    channels: usize,
    sink: Sink<'a>,
    frame: (f32, usize),
    piece: Vec<f32>,
}

impl<'a> Mixer<'a> {
    pub(super) fn new(rate: u32, channels: usize, sink: Sink<'a>) -> Result<Self, Error> {
        if rate == 0 || channels == 0 || channels > MOST_CHANNELS {
            return Err(Error::Broken(format!("{rate} samples a second on {channels} channels")));
        }
        Ok(Self { rate, channels, sink, frame: (0.0, 0), piece: Vec::with_capacity(PIECE) })
    }

    /// Adds one sample of the interleaved audio.
    pub(super) fn push(&mut self, sample: f32) -> Result<(), Error> {
        self.frame.0 += sample;
        self.frame.1 += 1;
        if self.frame.1 == self.channels {
            self.piece.push(self.frame.0 / self.channels as f32);
            self.frame = (0.0, 0);
            if self.piece.len() == PIECE {
                return self.flush();
            }
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<(), Error> {
        let piece = std::mem::take(&mut self.piece);
        (self.sink)(self.rate, &piece)?;
        self.piece = piece;
        self.piece.clear();
        Ok(())
    }
}

fn wav(path: &Path, reader: BufReader<File>, sink: Sink<'_>) -> Result<&'static str, Error> {
    let mut reader = match hound::WavReader::new(reader) {
        Ok(reader) => reader,
        // The codecs of telephone networks.
        Err(hound::Error::Unsupported | hound::Error::FormatError(_)) => return g711::wav(path, sink),
        Err(error) => return Err(broken(error)),
    };
    let spec = reader.spec();
    let mut mixer = Mixer::new(spec.sample_rate, spec.channels.into(), sink)?;
    let scale = 1.0 / (1_i64 << (spec.bits_per_sample.clamp(1, 32) - 1)) as f32;
    match spec.sample_format {
        hound::SampleFormat::Float => {
            for sample in reader.samples::<f32>().map_while(Result::ok) {
                mixer.push(sample)?;
            }
        }
        // A truncated recording is still usable up to that point.
        hound::SampleFormat::Int => {
            for sample in reader.samples::<i32>().map_while(Result::ok) {
                mixer.push(sample as f32 * scale)?;
            }
        }
    }
    mixer.flush().map(|()| "audio/wav")
}

fn flac(reader: BufReader<File>, sink: Sink<'_>) -> Result<&'static str, Error> {
    let mut reader = claxon::FlacReader::new(reader).map_err(broken)?;
    let info = reader.streaminfo();
    let mut mixer = Mixer::new(info.sample_rate, info.channels as usize, sink)?;
    let scale = 1.0 / (1_i64 << (info.bits_per_sample.clamp(1, 32) - 1)) as f32;
    for sample in reader.samples() {
        mixer.push(sample.map_err(broken)? as f32 * scale)?;
    }
    mixer.flush().map(|()| "audio/flac")
}

fn vorbis(reader: BufReader<File>, sink: Sink<'_>) -> Result<&'static str, Error> {
    let mut reader = lewton::inside_ogg::OggStreamReader::new(reader).map_err(broken)?;
    let (rate, channels) = (reader.ident_hdr.audio_sample_rate, reader.ident_hdr.audio_channels.into());
    let mut mixer = Mixer::new(rate, channels, sink)?;
    while let Some(packet) = reader.read_dec_packet_itl().map_err(broken)? {
        for sample in packet {
            mixer.push(f32::from(sample) / 32_768.0)?;
        }
    }
    mixer.flush().map(|()| "audio/ogg")
}

fn mp3(reader: BufReader<File>, sink: Sink<'_>) -> Result<&'static str, Error> {
    let mut decoder = minimp3::Decoder::new(reader);
    let mut any = false;
    loop {
        match decoder.next_frame() {
            Ok(frame) => {
                any = true;
                let rate = u32::try_from(frame.sample_rate).unwrap_or_default();
                let mut mixer = Mixer::new(rate, frame.channels, sink)?;
                for sample in frame.data {
                    mixer.push(f32::from(sample) / 32_768.0)?;
                }
                mixer.flush()?;
            }
            Err(minimp3::Error::SkippedData | minimp3::Error::InsufficientData) => {}
            Err(minimp3::Error::Eof) if any => return Ok("audio/mpeg"),
            Err(error) => return Err(broken(error)),
        }
    }
}
