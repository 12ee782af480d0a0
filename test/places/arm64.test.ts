import { keepPromises } from "./keep-promises.ts";

keepPromises("arm64");
