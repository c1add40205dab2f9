//! The messages of PostgreSQL's `pgoutput` plugin, protocol version 1, as far as a change feed needs them.

use bytes::{Buf, Bytes};

/// One message of the stream, between the begin and the commit of its transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// Describes a table before its first change, and again whenever its columns change.
    Relation(Relation),
    Insert {
        relation: u32,
        new: Vec<Cell>,
    },
    Update {
        relation: u32,
        old: Option<Vec<Cell>>,
        new: Vec<Cell>,
    },
    Delete {
        relation: u32,
        old: Vec<Cell>,
    },
    /// A truncate, a type or an origin. Subscribers get nothing of these.
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relation {
    pub id: u32,
    pub schema: String,
    pub name: String,
    pub columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Column {
    pub name: String,
    pub type_id: u32,
    /// Part of the replica identity, which is the primary key by default.
    pub is_key: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    /// A large value stored out of line that this update did not change. The log does not repeat it.
    Unchanged,
    Text(String),
}

/// The server sent something this decoder does not know. The rest of the stream cannot be decoded reliably.
#[derive(Debug, thiserror::Error)]
#[error("the replication stream holds {0}")]
pub(crate) struct Garbled(&'static str);

pub(crate) fn decode(mut data: Bytes) -> Result<Message, Garbled> {
    Ok(match byte(&mut data)? {
        b'R' => Message::Relation(relation(&mut data)?),
        b'I' => {
            let relation = int(&mut data)?;
            expect(&mut data, b'N')?;
            Message::Insert { relation, new: cells(&mut data)? }
        }
        b'U' => {
            let relation = int(&mut data)?;
            let mut part = byte(&mut data)?;
            let mut old = None;
            if part == b'K' || part == b'O' {
                old = Some(cells(&mut data)?);
                part = byte(&mut data)?;
            }
            if part != b'N' {
                return Err(Garbled("an update without its new row"));
            }
            Message::Update { relation, old, new: cells(&mut data)? }
        }
        b'D' => {
            let relation = int(&mut data)?;
            match byte(&mut data)? {
                b'K' | b'O' => Message::Delete { relation, old: cells(&mut data)? },
                _ => return Err(Garbled("a delete without its old row")),
            }
        }
        _ => Message::Other,
    })
}

fn relation(data: &mut Bytes) -> Result<Relation, Garbled> {
    let id = int(data)?;
    let schema = text(data)?;
    let name = text(data)?;
    byte(data)?; // replica identity
    let count = short(data)?;
    let mut columns = Vec::with_capacity(count.into());
    for _ in 0..count {
        let is_key = byte(data)? & 1 == 1;
        let name = text(data)?;
        let type_id = int(data)?;
        int(data)?; // type modifier
        columns.push(Column { name, type_id, is_key });
    }
    Ok(Relation { id, schema, name, columns })
}

fn cells(data: &mut Bytes) -> Result<Vec<Cell>, Garbled> {
    let count = short(data)?;
    let mut row = Vec::with_capacity(count.into());
    for _ in 0..count {
        row.push(match byte(data)? {
            b'n' => Cell::Null,
            b'u' => Cell::Unchanged,
            b't' => {
                let length = int(data)? as usize;
                if data.remaining() < length {
                    return Err(Garbled("a value that is cut off"));
                }
                let value = data.split_to(length);
                Cell::Text(String::from_utf8_lossy(&value).into_owned())
            }
            _ => return Err(Garbled("a value of an unknown kind")),
        });
    }
    Ok(row)
}

fn expect(data: &mut Bytes, wanted: u8) -> Result<(), Garbled> {
    if byte(data)? == wanted { Ok(()) } else { Err(Garbled("an insert without its row")) }
}

fn byte(data: &mut Bytes) -> Result<u8, Garbled> {
    data.try_get_u8().map_err(|_| Garbled("a message that is cut off"))
}

fn short(data: &mut Bytes) -> Result<u16, Garbled> {
    data.try_get_u16().map_err(|_| Garbled("a message that is cut off"))
}

fn int(data: &mut Bytes) -> Result<u32, Garbled> {
    data.try_get_u32().map_err(|_| Garbled("a message that is cut off"))
}

fn text(data: &mut Bytes) -> Result<String, Garbled> {
    let end = data.iter().position(|&b| b == 0).ok_or(Garbled("a name without an end"))?;
    let value = data.split_to(end);
    data.advance(1);
    Ok(String::from_utf8_lossy(&value).into_owned())
}

#[cfg(test)]
mod tests;
