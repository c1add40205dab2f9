use std::path::PathBuf;
use std::time::Duration;

use super::*;

/// A directory that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("gleaner-audio-{}", uuid::Uuid::now_v7()));
        std::fs::create_dir(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const HOUR: Duration = Duration::from_secs(3600);

/// A tone of 440 Hz on every channel.
fn tone(path: &Path, rate: u32, channels: u16, seconds: f64) {
    let spec = hound::WavSpec { channels, sample_rate: rate, bits_per_sample: 16, sample_format: hound::SampleFormat::Int };
    let mut writer = hound::WavWriter::create(path, spec).expect("a file");
    for n in 0..(f64::from(rate) * seconds) as u32 {
        let sample = (f64::from(n) * 440.0 * std::f64::consts::TAU / f64::from(rate)).sin();
        for _ in 0..channels {
            writer.write_sample((sample * 16_000.0) as i16).expect("a sample");
        }
    }
    writer.finalize().expect("the file");
}

/// How often per second the signal crosses zero upwards: its pitch.
fn pitch(path: &Path) -> f64 {
    let mut reader = hound::WavReader::open(path).expect("a file");
    assert_eq!((reader.spec().sample_rate, reader.spec().channels), (RATE, 1));
    let samples: Vec<i16> = reader.samples().map(|s| s.expect("a sample")).collect();
    let rises = samples.windows(2).filter(|w| w[0] < 0 && w[1] >= 0).count();
    rises as f64 / (samples.len() as f64 / f64::from(RATE))
}

#[test]
fn any_rate_becomes_sixteen_kilohertz_mono_of_the_same_length_and_pitch() {
    let folder = Folder::new();
    for (rate, channels) in [(8_000, 1), (16_000, 1), (22_050, 2), (44_100, 2), (48_000, 1), (11_025, 1)] {
        let (from, to) = (folder.0.join("from.wav"), folder.0.join("to.wav"));
        tone(&from, rate, channels, 2.0);
        let sound = convert(&from, &to, HOUR).expect("it is read");
        assert!((sound.seconds - 2.0).abs() < 0.1, "{rate}: {sound:?}");
        let pitch = pitch(&to);
        assert!((pitch - 440.0).abs() < 8.0, "{rate}: {pitch}");
    }
}

/// One second of 440 Hz, stereo at 22,050 Hz, as written by lame, flac and oggenc.
#[test]
fn mp3_flac_and_ogg_vorbis_are_read() {
    let folder = Folder::new();
    for (name, format) in [("tone.mp3", "audio/mpeg"), ("tone.flac", "audio/flac"), ("tone.ogg", "audio/ogg")] {
        let (from, to) = (Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sounds").join(name), folder.0.join("to.wav"));
        let sound = convert(&from, &to, HOUR).expect(name);
        assert!((sound.seconds - 1.0).abs() < 0.15, "{name}: {sound:?}");
        assert_eq!(sound.format, format);
        let pitch = pitch(&to);
        assert!((pitch - 440.0).abs() < 60.0, "{name}: {pitch}");
    }
    let opus = convert(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sounds/tone.opus"), &folder.0.join("to.wav"), HOUR);
    assert!(matches!(opus, Err(Error::Unsupported("Ogg Opus"))), "{opus:?}");
}

#[test]
fn telephone_coding_is_read() {
    let folder = Folder::new();
    let (from, to) = (folder.0.join("from.wav"), folder.0.join("to.wav"));
    // Encodes µ-law by searching for the byte that decodes closest to the sample.
    let encode = |sample: i16| (0..=255_u8).min_by_key(|byte| (i32::from(g711::mu_law(*byte)) - i32::from(sample)).abs()).expect("a byte");
    let data: Vec<u8> =
        (0..8_000).map(|n| encode(((f64::from(n) * 440.0 * std::f64::consts::TAU / 8_000.0).sin() * 16_000.0) as i16)).collect();
    let mut file = b"RIFF\0\0\0\0WAVEfmt \x12\0\0\0\x07\0\x01\0\x40\x1f\0\0\x40\x1f\0\0\x01\0\x08\0\0\0data".to_vec();
    file.extend((data.len() as u32).to_le_bytes());
    file.extend(data);
    std::fs::write(&from, file).expect("a file");
    let sound = convert(&from, &to, HOUR).expect("it is read");
    assert!((sound.seconds - 1.0).abs() < 0.1, "{sound:?}");
    assert!((pitch(&to) - 440.0).abs() < 8.0);
    assert_eq!((g711::mu_law(0xff), g711::mu_law(0x80), g711::mu_law(0x00)), (0, 32_124, -32_124));
    assert_eq!((g711::a_law(0xd5), g711::a_law(0xaa), g711::a_law(0x2a)), (8, 32_256, -32_256));
}

#[test]
fn what_is_no_recording_is_recognised() {
    let folder = Folder::new();
    let (from, to) = (folder.0.join("from"), folder.0.join("to.wav"));
    let error_for = |bytes: &[u8]| {
        std::fs::write(&from, bytes).expect("a file");
        convert(&from, &to, HOUR).expect_err("it is no sound").to_string()
    };
    assert!(error_for(b"<html>not found</html>").contains("no format we know"));
    assert!(error_for(b"").contains("no sound"));
    assert!(error_for(b"OggS\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x13OpusHead").contains("Ogg Opus"));
    assert!(error_for(b"RIFF\0\0\0\0WAVEfmt ").contains("broken"));
    assert!(error_for(b"ID3\x04 and then nothing").contains("broken"));
}

#[test]
fn a_recording_without_end_is_left() {
    let folder = Folder::new();
    let (from, to) = (folder.0.join("from.wav"), folder.0.join("to.wav"));
    tone(&from, 8_000, 1, 3.0);
    assert!(matches!(convert(&from, &to, Duration::from_secs(2)), Err(Error::TooLong(2))));
}
