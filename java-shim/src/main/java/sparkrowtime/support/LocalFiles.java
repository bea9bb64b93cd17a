package sparkrowtime.support;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileAlreadyExistsException;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system without a process for the permissions of each file. Where it has no native library, Hadoop
 * starts {@code chmod} for each file and for each file's checksum.
 */
public final class LocalFiles extends LocalFileSystem {
  public LocalFiles() {
    super(new Raw());
  }

  /** Hadoop's settings, with this class if the path is a local one and they name no other. */
  public static Configuration in(Path path, Configuration hadoop) throws IOException {
    if (hadoop.get("fs.file.impl") != null || !"file".equals(path.getFileSystem(hadoop).getUri().getScheme())) {
      return hadoop;
    }
    Configuration local = new Configuration(hadoop);
    local.setClass("fs.file.impl", LocalFiles.class, LocalFileSystem.class);
    local.setClassLoader(LocalFiles.class.getClassLoader());
    local.setBoolean("fs.file.impl.disable.cache", true); // others have the file system of that cache
    return local;
  }

  /** Moves a file and its checksum, unless the name is taken. Returns false, and does nothing, where it has no links. */
  public boolean link(Path from, Path to) throws IOException {
    try {
      Files.createLink(pathToFile(to).toPath(), pathToFile(from).toPath());
    } catch (java.nio.file.FileAlreadyExistsException taken) {
      throw new FileAlreadyExistsException(to + " exists already");
    } catch (FileSystemException | UnsupportedOperationException without) {
      return false;
    }
    getRawFileSystem().rename(getChecksumFile(from), getChecksumFile(to));
    Files.delete(pathToFile(from).toPath());
    return true;
  }

  private static final class Raw extends RawLocalFileSystem {
    private static final int SET_IDS = 06000;

    /** As {@code chmod} does with a number, which leaves a folder its set-group-ID bit. */
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      java.nio.file.Path file = pathToFile(path).toPath();
      int kept = Files.isDirectory(file) ? (int) Files.getAttribute(file, "unix:mode") & SET_IDS : 0;
      Files.setAttribute(file, "unix:mode", kept | permission.toShort());
    }
  }
}
