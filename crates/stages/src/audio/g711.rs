//! WAV files in the format of telephone networks: G.711, µ-law and A-law, one byte per sample.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::Error;
use super::decode::{Mixer, Sink};

const A_LAW: u16 = 6;
const MU_LAW: u16 = 7;

pub(super) fn wav(path: &Path, sink: Sink<'_>) -> Result<&'static str, Error> {
    let broken = |error: std::io::Error| Error::Broken(error.to_string());
    let mut reader = BufReader::new(File::open(path).map_err(broken)?);
    let mut riff = [0_u8; 12];
    reader.read_exact(&mut riff).map_err(broken)?;
    let mut format: Option<(u16, usize, u32)> = None;
    loop {
        let mut head = [0_u8; 8];
        reader.read_exact(&mut head).map_err(|_| Error::Silent)?;
        let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
        let mut chunk = (&mut reader).take(u64::from(size) + u64::from(size % 2));
        if head.starts_with(b"fmt ") {
            let mut fields = [0_u8; 16];
            chunk.read_exact(&mut fields).map_err(broken)?;
            let short = |at: usize| u16::from_le_bytes([fields[at], fields[at + 1]]);
            let rate = u32::from_le_bytes([fields[4], fields[5], fields[6], fields[7]]);
            format = Some((short(0), short(2).into(), rate));
        } else if head.starts_with(b"data") {
            let (tag, channels, rate) = format.ok_or_else(|| Error::Broken("its data comes before its format".into()))?;
            let read: fn(u8) -> i16 = match tag {
                A_LAW => a_law,
                MU_LAW => mu_law,
                _ => return Err(Error::Unsupported("WAV in an uncommon coding")),
            };
            let mut mixer = Mixer::new(rate, channels, sink)?;
            for byte in chunk.take(size.into()).bytes() {
                mixer.push(f32::from(read(byte.map_err(broken)?)) / 32_768.0)?;
            }
            return mixer.flush().map(|()| "audio/wav");
        }
        std::io::copy(&mut chunk, &mut std::io::sink()).map_err(broken)?;
    }
}

/// Decodes according to the tables of ITU-T G.711.
pub(super) fn mu_law(byte: u8) -> i16 {
    let byte = !byte;
    let (exponent, mantissa) = ((byte >> 4) & 7, i32::from(byte & 15));
    let size = (((mantissa << 3) + 132) << exponent) - 132;
    let signed = if byte & 0x80 == 0 { size } else { -size };
    i16::try_from(signed).unwrap_or_default()
}

pub(super) fn a_law(byte: u8) -> i16 {
    let byte = byte ^ 0x55;
    let (exponent, mantissa) = (u32::from((byte >> 4) & 7), i32::from(byte & 15));
    let size = if exponent == 0 { (mantissa << 4) + 8 } else { ((mantissa << 4) + 264) << (exponent - 1) };
    let signed = if byte & 0x80 == 0 { -size } else { size };
    i16::try_from(signed).unwrap_or_default()
}
