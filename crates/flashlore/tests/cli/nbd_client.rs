//! The smallest NBD client: one export, simple replies.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const READ: u16 = 0;
const WRITE: u16 = 1;
const FLUSH: u16 = 3;
const TRIM: u16 = 4;

/// A connection to an export.
pub struct Client {
    stream: UnixStream,
    pub size: u64,
}

impl Client {
    /// Connects, if the export is given out.
    pub fn open(socket: &Path, export: &str) -> io::Result<Client> {
        let mut stream = UnixStream::connect(socket)?;
        let mut greeting = [0; 18];
        stream.read_exact(&mut greeting)?;
        assert_eq!(&greeting[..16], b"NBDMAGICIHAVEOPT");
        // Fixed newstyle, no zeroes; then the option EXPORT_NAME.
        let mut hello = vec![0, 0, 0, 3];
        hello.extend(b"IHAVEOPT");
        hello.extend(1u32.to_be_bytes());
        hello.extend((export.len() as u32).to_be_bytes());
        hello.extend(export.as_bytes());
        stream.write_all(&hello)?;
        let mut answer = [0; 10];
        stream.read_exact(&mut answer)?;
        let size = u64::from_be_bytes(answer[..8].try_into().unwrap());
        Ok(Client { stream, size })
    }

    fn ask(&mut self, command: u16, offset: u64, length: u32, data: &[u8]) -> io::Result<u32> {
        let mut request = 0x2560_9513u32.to_be_bytes().to_vec();
        request.extend(0u16.to_be_bytes());
        request.extend(command.to_be_bytes());
        request.extend(7u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(data);
        self.stream.write_all(&request)?;
        let mut reply = [0; 16];
        self.stream.read_exact(&mut reply)?;
        assert_eq!(reply[..4], 0x6744_6698u32.to_be_bytes());
        Ok(u32::from_be_bytes(reply[4..8].try_into().unwrap()))
    }

    /// Writes; the number of the error, or 0.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<u32> {
        self.ask(WRITE, offset, data.len() as u32, data)
    }

    /// Forgets bytes; the number of the error, or 0.
    pub fn trim(&mut self, offset: u64, length: u32) -> io::Result<u32> {
        self.ask(TRIM, offset, length, &[])
    }

    /// Everything becomes durable.
    pub fn flush(&mut self) -> io::Result<u32> {
        self.ask(FLUSH, 0, 0, &[])
    }

    /// Reads, or answers the number of the error.
    pub fn read(&mut self, offset: u64, length: u32) -> io::Result<Result<Vec<u8>, u32>> {
        match self.ask(READ, offset, length, &[])? {
            0 => {
                let mut data = vec![0; length as usize];
                self.stream.read_exact(&mut data)?;
                Ok(Ok(data))
            }
            error => Ok(Err(error)),
        }
    }
}
