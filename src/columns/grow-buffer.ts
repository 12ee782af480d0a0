/**
 * Returns a longer buffer with the same content, of at least `bytes`. The old one is freed at once: the garbage collector notices
 * the memory of buffers too late.
 */
export function growBuffer(buffer: ArrayBufferLike, bytes: number): ArrayBuffer {
  // Empty columns share one buffer.
  if (buffer.byteLength === 0) return new ArrayBuffer(Math.max(bytes, firstBytes));
  const half = Math.ceil(buffer.byteLength / 2 / largestNumber) * largestNumber;
  return (buffer as ArrayBuffer).transfer(Math.max(bytes, buffer.byteLength + half));
}

const firstBytes = 64;
/** A buffer's length must be a multiple of every number's size. */
const largestNumber = Float64Array.BYTES_PER_ELEMENT;
