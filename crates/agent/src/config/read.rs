//! Parses values as people write them. Each parser's error says what would be valid.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use gleaner::worker::Wake;

pub(super) fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

/// A name becomes part of a file name.
pub(super) fn name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.chars().all(plain) && text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric()) && text.len() <= 64 {
        Ok(text.to_owned())
    } else {
        Err("a name is up to 64 letters, digits, '-', '_' and '.', beginning with a letter or a digit".into())
    }
}

pub(super) fn list(text: &str) -> Result<Vec<String>, String> {
    let words: Vec<String> = text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect();
    if words.is_empty() { Err("name at least one, or leave the setting out".into()) } else { Ok(words) }
}

pub(super) fn number(range: RangeInclusive<usize>) -> impl Fn(&str) -> Result<usize, String> {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("write a whole number from {} to {}", range.start(), range.end()))
    }
}

/// `5s`, `250 ms`, `2 min`, `1.5h`; a number alone is seconds.
pub(super) fn span(text: &str) -> Result<Duration, String> {
    let sorry = || "write a length of time like 5s, 250ms, 2min or 1h; a number alone is seconds".to_owned();
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit.trim() {
        "ms" | "milliseconds" | "millisecond" => 0.001,
        "" | "s" | "sec" | "second" | "seconds" => 1.0,
        "m" | "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return Err(sorry()),
    };
    let number: f64 = number.trim().parse().map_err(|_| sorry())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| sorry())
}

/// A zero wait would be a busy loop.
pub(super) fn some_span(text: &str) -> Result<Duration, String> {
    let span = span(text)?;
    if span < Duration::from_millis(10) { Err("is too short: at least 10ms".into()) } else { Ok(span) }
}

pub(super) fn yes(text: &str) -> Result<bool, String> {
    match text {
        "true" | "yes" | "on" | "1" => Ok(true),
        "false" | "no" | "off" | "0" => Ok(false),
        _ => Err("write true or false".into()),
    }
}

pub(super) fn factor(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|factor| (1.0..=100.0).contains(factor)).ok_or_else(|| "write a number from 1 to 100".into())
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "write a number from 0 to 1".into())
}

pub(super) fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "write a whole number".into())
}

pub(super) fn wake(text: &str) -> Result<Wake, String> {
    match text {
        "hybrid" => Ok(Wake::Hybrid),
        "poll-only" => Ok(Wake::PollOnly),
        "push-only" => Ok(Wake::PushOnly),
        _ => Err("write hybrid, poll-only or push-only".into()),
    }
}

pub(super) fn url(text: &str) -> Result<String, String> {
    if text.starts_with("http://") || text.starts_with("https://") {
        Ok(text.trim_end_matches('/').to_owned())
    } else {
        Err("write the server's address, beginning with https:// or http://".into())
    }
}

/// The page shows what runs and accepts commands, so it is for this machine only.
pub(super) fn listen(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "off" {
        return Ok(None);
    }
    let address: SocketAddr = text.parse().map_err(|_| "write an address with a port like 127.0.0.1:7433, or off".to_owned())?;
    if address.ip().is_loopback() {
        Ok(Some(address))
    } else {
        Err("is not on loopback (127.0.0.1 or [::1]); the page takes orders, and is only for this machine".into())
    }
}

#[cfg(test)]
mod tests;
