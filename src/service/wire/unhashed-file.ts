/** A file that is read once, for its hash and for the service. */
export interface UnhashedFile {
  size: number;
  /** Throws if it is not the file that was found. */
  open(): OpenFile;
}

export interface OpenFile {
  descriptor: number;
  /** Returns the number of bytes that were read. */
  read(buffer: Uint8Array, length: number, position: number): number;
  /** Throws if it is no longer the file that was found. */
  requireUnchanged(): void;
  /** Returns the error for a file that has changed. */
  changed(): Error;
  close(): void;
}
