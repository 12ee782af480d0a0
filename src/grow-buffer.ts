/**
 * A longer buffer with the same content, of at least `bytes`. The one before is given back at once, and not when the collector
 * comes to it, which sees too late what buffers take.
 */
export function growBuffer(buffer: ArrayBufferLike, bytes: number): ArrayBuffer {
  // Columns that are still empty share theirs.
  if (buffer.byteLength === 0) return new ArrayBuffer(Math.max(bytes, firstBytes));
  const half = Math.ceil(buffer.byteLength / 2 / largestNumber) * largestNumber;
  return (buffer as ArrayBuffer).transfer(Math.max(bytes, buffer.byteLength + half));
}

const firstBytes = 64;
/** A column is as long as some whole numbers are. */
const largestNumber = Float64Array.BYTES_PER_ELEMENT;
