//! Speech that is synthesized and recognized on this machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use anyhow::{Context as _, Result, anyhow, ensure};

/// The ready-made example, with its dependencies fetched.
pub(super) fn example() -> Result<PathBuf> {
    static READY: LazyLock<Result<PathBuf, String>> = LazyLock::new(|| {
        let folder = super::example_folder();
        let folder = folder.canonicalize().map_err(|error| format!("{}: {error}", folder.display()))?;
        let setup = Command::new(folder.join("setup")).output().map_err(|error| format!("examples/agent/setup: {error}"))?;
        if setup.status.success() { Ok(folder) } else { Err(String::from_utf8_lossy(&setup.stderr).into_owned()) }
    });
    READY.as_ref().cloned().map_err(|error| anyhow!("{error}"))
}

/// A sentence spoken by flite, in a format that has to be decoded: stereo at 32 kHz.
pub(super) fn say(sentence: &str, folder: &Path) -> Result<Vec<u8>> {
    let path = folder.join("spoken.wav");
    let spoken = Command::new("flite").args(["-voice", "rms", "-t", sentence, "-o"]).arg(&path).output();
    let spoken = spoken.context("flite speaks for this test; scripts/install test installs it")?;
    ensure!(spoken.status.success(), "flite: {}", String::from_utf8_lossy(&spoken.stderr));
    let (rate, spoken) = read(&path)?;
    ensure!(rate == 16_000, "flite speaks at {rate} Hz");
    // Every sample is written twice, on two channels.
    let samples: Vec<u8> = spoken.into_iter().flat_map(|sample| [sample; 4]).flat_map(i16::to_le_bytes).collect();
    let mut wav = b"RIFF".to_vec();
    wav.extend(u32::try_from(samples.len() + 36)?.to_le_bytes());
    wav.extend(b"WAVEfmt \x10\0\0\0\x01\0\x02\0");
    wav.extend(32_000_u32.to_le_bytes());
    wav.extend((32_000_u32 * 4).to_le_bytes());
    wav.extend(b"\x04\0\x10\0data");
    wav.extend(u32::try_from(samples.len())?.to_le_bytes());
    wav.extend(samples);
    Ok(wav)
}

/// The sample rate, and the samples.
fn read(path: &Path) -> Result<(u32, Vec<i16>)> {
    let bytes = std::fs::read(path)?;
    let data = bytes.windows(4).position(|window| window == b"data").context("a WAV file")? + 8;
    let rate = u32::from_le_bytes(bytes[24..28].try_into()?);
    Ok((rate, bytes[data..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()))
}
