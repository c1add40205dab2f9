//! Writes mono audio of any sample rate as a 16 kHz WAV file.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use hound::{SampleFormat, WavSpec, WavWriter};
use rubato::audioadapter::Adapter as _;
use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Async, FixedAsync, Indexing, Resampler as _, SincInterpolationParameters, WindowFunction};

use super::{Error, RATE};

const CHUNK: usize = 1024;

pub(super) struct Writer {
    rate: u32,
    file: WavWriter<BufWriter<File>>,
    /// None if the rate is already right.
    resampler: Option<Async<f32>>,
    waiting: Vec<f32>,
    taken: u64,
    /// Samples at the start that the resampler itself adds.
    to_skip: usize,
    /// Where the audio ends, once that is known. Only padding follows.
    end: u64,
}

impl Writer {
    pub(super) fn new(path: &Path, rate: u32) -> Result<Self, Error> {
        let spec = WavSpec { channels: 1, sample_rate: RATE, bits_per_sample: 16, sample_format: SampleFormat::Int };
        let file = WavWriter::create(path, spec).map_err(write)?;
        let resampler = (rate != RATE)
            .then(|| {
                // 128 taps are enough for speech. Music would need more.
                let filter = SincInterpolationParameters::new(128, WindowFunction::BlackmanHarris2);
                Async::new_sinc(f64::from(RATE) / f64::from(rate), 1.0, &filter, CHUNK, 1, FixedAsync::Input)
            })
            .transpose()
            .map_err(|error| Error::Broken(format!("{rate} samples a second: {error}")))?;
        let to_skip = resampler.as_ref().map_or(0, rubato::Resampler::output_delay);
        Ok(Self { rate, file, resampler, waiting: Vec::new(), taken: 0, to_skip, end: u64::MAX })
    }

    pub(super) fn write(&mut self, rate: u32, mono: &[f32]) -> Result<(), Error> {
        if rate != self.rate {
            return Err(Error::Broken(format!("it changes from {} to {rate} samples a second", self.rate)));
        }
        self.taken += mono.len() as u64;
        let Some(needed) = self.resampler.as_ref().map(rubato::Resampler::input_frames_next) else { return self.put(mono) };
        self.waiting.extend_from_slice(mono);
        let whole = self.waiting.len() / needed * needed;
        let ready: Vec<f32> = self.waiting.drain(..whole).collect();
        for chunk in ready.chunks(needed) {
            self.resample(chunk, None)?;
        }
        Ok(())
    }

    /// Its length in seconds.
    pub(super) fn finish(mut self) -> Result<f64, Error> {
        if let Some(needed) = self.resampler.as_ref().map(rubato::Resampler::input_frames_next) {
            self.end = self.taken * u64::from(RATE) / u64::from(self.rate);
            let mut last = std::mem::take(&mut self.waiting);
            let left = last.len();
            last.resize(needed, 0.0);
            self.resample(&last, Some(left))?;
            // Feeds silence until the resampler has returned the samples it still buffers.
            while u64::from(self.file.len()) < self.end {
                self.resample(&vec![0.0; needed], Some(0))?;
            }
        }
        let samples = self.file.len();
        self.file.finalize().map_err(write)?;
        Ok(f64::from(samples) / f64::from(RATE))
    }

    fn resample(&mut self, chunk: &[f32], partial: Option<usize>) -> Result<(), Error> {
        let Some(resampler) = &mut self.resampler else { return Ok(()) };
        let broken = |error: &dyn std::fmt::Display| Error::Broken(format!("resample: {error}"));
        let input = SequentialSlice::new(chunk, 1, chunk.len()).map_err(|error| broken(&error))?;
        let indexing = partial.map(|left| Indexing { partial_len: Some(left), ..Indexing::default() });
        let output = resampler.process(&input, indexing.as_ref()).map_err(|error| broken(&error))?;
        let samples: Vec<f32> = (0..output.frames()).filter_map(|at| output.read_sample(0, at)).collect();
        let skipped = self.to_skip.min(samples.len());
        self.to_skip -= skipped;
        self.put(&samples[skipped..])
    }

    fn put(&mut self, mono: &[f32]) -> Result<(), Error> {
        let room = usize::try_from(self.end.saturating_sub(self.file.len().into())).unwrap_or(usize::MAX);
        for sample in mono.iter().take(room) {
            self.file.write_sample((sample.clamp(-1.0, 1.0) * 32_767.0) as i16).map_err(write)?;
        }
        Ok(())
    }
}

fn write(error: hound::Error) -> Error {
    Error::Write(error.to_string())
}
