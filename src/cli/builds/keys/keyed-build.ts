import type { KeyPins } from "../../../builder/reference-lock.ts";
import { BoughError } from "../../../errors.ts";
import type { Connections } from "../../service/connections.ts";

type FoundKey = { key: string; pins: KeyPins };

/** A build whose content key is known. */
export interface KeyedBuild {
  key: string;
  pins: KeyPins;
  /** Has the key for whoever looks for the image, if a tag of it does not. */
  annotations: ReadonlyMap<string, string> | undefined;
  /** Those through which the key was found, which the build closes. `undefined` if builds share them. */
  connections?: Connections;
  /** Rejects if the files have changed while it was built. */
  confirm(): Promise<void>;
}

/** @param findAgain reads the files again, if they have changed by their `stat` */
export function keyedBuild(
  { key, pins }: FoundKey,
  annotations: KeyedBuild["annotations"],
  findAgain: () => Promise<FoundKey>,
): KeyedBuild {
  return {
    ...{ key, pins, annotations },
    async confirm() {
      const now = await findAgain();
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
