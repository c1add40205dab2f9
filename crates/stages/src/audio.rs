//! Audio conversion: every recording becomes 16 kHz mono, which transcribers expect.
//!
//! Everything is streamed: a two-hour call is never held in memory as a whole.

mod decode;
mod g711;
mod resample;

use std::path::Path;

use self::resample::Writer;

/// The sample rate for transcribers, in samples per second.
pub const RATE: u32 = 16_000;

/// Why a recording cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the recording is of no format we know (it begins with {0}); WAV, MP3, FLAC and Ogg Vorbis are read")]
    Unknown(String),
    #[error("the recording is {0}, which is not read here; give the stage `decode = false`, so that the model gets it as it is")]
    Unsupported(&'static str),
    #[error("the recording is broken: {0}")]
    Broken(String),
    #[error("the recording has no sound in it")]
    Silent,
    #[error("the recording is longer than {0} seconds; `recordings.longest` in the pipeline file allows more")]
    TooLong(u64),
    #[error("write the sound: {0}")]
    Write(String),
}

/// The result of a conversion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sound {
    /// The length in seconds.
    pub seconds: f64,
    /// The original format.
    pub format: &'static str,
}

/// Writes the WAV file that a transcriber reads. It is slow: call it where blocking is allowed.
pub fn convert(from: &Path, to: &Path, longest: std::time::Duration) -> Result<Sound, Error> {
    let mut writer: Option<Writer> = None;
    let mut frames = 0_u64;
    let format = decode::decode(from, &mut |rate, mono| {
        frames += mono.len() as u64;
        if frames > longest.as_secs().saturating_mul(rate.into()) {
            return Err(Error::TooLong(longest.as_secs()));
        }
        let writer = match &mut writer {
            Some(writer) => writer,
            None => writer.insert(Writer::new(to, rate)?),
        };
        writer.write(rate, mono)
    })?;
    let seconds = writer.ok_or(Error::Silent)?.finish()?;
    if seconds <= 0.0 { Err(Error::Silent) } else { Ok(Sound { seconds, format }) }
}

#[cfg(test)]
mod tests;
