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

/** The contents that a service is known to have: file ids by SHA-256. */
export interface KnownFiles {
  get(sha256: string): string | undefined;
  set(sha256: string, uuid: string): void;
  /** Writes collected entries, if `set` does not write each. */
  flush?(): void;
}

/**
 * Returns the id of a content. Calls `send` if the service is not known to have the content and no other call is sending it. If that
 * other call fails, the next waiting one sends it.
 */
export type SendOnce = (sha256: string, send: () => Promise<string>) => Promise<string>;

/** Sends each content once, also if several stages need it at the same time. */
export function createSendOnce(known: KnownFiles | undefined): SendOnce {
  const underWay = new Map<string, Promise<string>>();
  return async (sha256, send) => {
    for (;;) {
      const id = known?.get(sha256);
      if (id !== undefined) return id;
      const other = underWay.get(sha256);
      if (other === undefined) break;
      await other.catch(() => undefined);
      // Without known files, nothing but the other call's outcome has the id.
      if (known === undefined) return other;
    }
    const sending = send();
    underWay.set(sha256, sending);
    try {
      const id = await sending;
      known?.set(sha256, id);
      return id;
    } finally {
      underWay.delete(sha256);
    }
  };
}
