/** The contents that a service is known to have: file ids by SHA-256. */
export interface KnownFiles {
  get(sha256: string): string | undefined;
  set(sha256: string, uuid: string): void;
  /** Writes collected entries, if `set` does not write each. */
  flush?(): void;
}

/**
 * Returns the id of a content. Calls `send` if the service is not known to have the content and nobody is sending it. If the one
 * who is sending it fails, the next one who waits sends it.
 */
export type SendOnce = (sha256: string, send: () => Promise<string>) => Promise<string>;

/** Makes the owner of a service's contents: several stages may need the same content at the same time. */
export function createSendOnce(known: KnownFiles | undefined): SendOnce {
  const underWay = new Map<string, Promise<string>>();
  return async (sha256, send) => {
    for (;;) {
      const id = known?.get(sha256);
      if (id !== undefined) return id;
      const other = underWay.get(sha256);
      if (other === undefined) break;
      await other.catch(() => undefined);
      // Without a list of what is known, the outcome is all there is to know.
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
