import type { KeyPins } from "../../../builder/reference-lock.ts";
import { BoughError } from "../../../errors.ts";
import type { Platform } from "../../../image/platform.ts";
import type { GlobalOptions } from "../../command-line/globals.ts";
import type { Connection } from "../../service/connection.ts";

/** Connects to a service of a build, or returns the connection that there is. */
export type ConnectTo = (service: {
  platforms: readonly Platform[];
  globals: GlobalOptions;
  option: string | undefined;
}) => Promise<{ connection: Connection }>;

type FoundKey = { key: string; pins: KeyPins };

/** A build whose content key is known. */
export interface KeyedBuild {
  key: string;
  pins: KeyPins;
  /** Has the key for whoever looks for the image, if a tag of it does not. */
  annotations: ReadonlyMap<string, string> | undefined;
  /** Rejects if the files have changed while it was built. */
  confirm(connectTo: ConnectTo): Promise<void>;
}

/** @param findAgain reads the files again, if they have changed by their `stat` */
export function keyedBuild(
  { key, pins }: FoundKey,
  annotations: KeyedBuild["annotations"],
  findAgain: (connectTo: ConnectTo) => Promise<FoundKey>,
): KeyedBuild {
  return {
    ...{ key, pins, annotations },
    async confirm(connectTo) {
      const now = await findAgain(connectTo);
      if (now.key === key) return;
      throw new BoughError(
        "files have changed while the image was built: its content key is no longer true",
        {
          hint: "Build again, and leave the files alone meanwhile.",
        },
      );
    },
  };
}
