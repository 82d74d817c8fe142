//! Little-endian fields one after the other: how every structure on the medium is written and read.

/// Writes fields into bytes that are large enough.
pub struct Writer<'a> {
    bytes: &'a mut [u8],
    at: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a mut [u8]) -> Self {
        Writer { bytes, at: 0 }
    }

    /// Appends bytes.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
        self
    }

    /// Appends a byte.
    pub fn u8(&mut self, value: u8) -> &mut Self {
        self.put(&[value])
    }

    /// Appends 2 bytes.
    pub fn u16(&mut self, value: u16) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// Appends 4 bytes.
    pub fn u32(&mut self, value: u32) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// Appends 8 bytes.
    pub fn u64(&mut self, value: u64) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// Appends 16 bytes.
    pub fn u128(&mut self, value: u128) -> &mut Self {
        self.put(&value.to_le_bytes())
    }

    /// Bytes written.
    pub fn written(&self) -> usize {
        self.at
    }
}

/// Reads fields; beyond the end everything is zero, so a caller checks lengths first.
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { bytes, at: 0 }
    }

    /// The next bytes.
    pub fn take<const N: usize>(&mut self) -> [u8; N] {
        let rest = self.bytes.get(self.at..);
        self.at += N;
        rest.and_then(<[u8]>::first_chunk)
            .copied()
            .unwrap_or([0; N])
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        self.take::<1>()[0]
    }

    /// The next 2 bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }

    /// The next 4 bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    /// The next 8 bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    /// The next 16 bytes.
    pub fn u128(&mut self) -> u128 {
        u128::from_le_bytes(self.take())
    }
}
