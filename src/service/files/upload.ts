/** A file of this machine to send, as it was when it was hashed. */
export interface LocalFile {
  absolutePath: string;
  sha256: string;
  size: number;
  /** Its content, if it is still in memory from being hashed. */
  content?: Uint8Array | undefined;
}

export interface UnhashedOptions {
  signal: AbortSignal;
  /** Called with the number of bytes passed on so far. */
  onBytes(bytes: number): void;
  /** Called before everything is sent, and also if it can't be sent. */
  onHash(sha256: string): void;
}

export interface SentFile {
  uuid: string;
  sha256: string;
  isReused: boolean;
}

export interface StreamOptions {
  /** Called with the number of bytes passed on so far. */
  progress?: (bytes: number) => void;
  /** The exact number of bytes, if the source has announced it: it is then announced to the service. */
  contentLength?: number | undefined;
  /** Called with the SHA-256 of all bytes before the service has all of them: if it throws, nothing is stored. */
  inspect?: ((sha256: string) => void) | undefined;
}

export interface UploadOptions {
  /** Aborts only this upload. */
  signal?: AbortSignal;
  /** Called for each content that the service now has. `isReused` is true if it had it already. */
  onFile?: (sha256: string, isReused: boolean) => void;
}

export interface UploadedFile {
  uuid: string;
  sha256: string;
  size: number;
}

export interface UploadProgress {
  files: number;
  /** Bytes sent to the service. */
  sentBytes: number;
  /** Contents that the service already had. */
  reused: number;
}
